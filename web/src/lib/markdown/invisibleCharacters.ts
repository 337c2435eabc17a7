/** Removes invisible characters that make text look different from what it is (bidirectional controls, zero-width). */

// Direction overrides, embeddings and isolates can turn "exe.txt" into "txt.exe"; tag characters are invisible
// letters a model reads and a person does not. Marks (LRM, RLM) and joiners stay: Persian, Indic scripts and
// emoji need them. A flag is a black flag spelt out in tag characters, so a whole one stays whole.
const DECEPTIVE =
  /(\u{1F3F4}[\u{E0030}-\u{E0039}\u{E0061}-\u{E007A}]{3,6}\u{E007F})|[\u{E0000}-\u{E007F}\u202A-\u202E\u2066-\u2069]/gu;

/** The text without what cannot be seen or turns the rest around; line ends as one character. */
export function withoutInvisible(text: string): string {
  return text
    .replace(/\r\n?/g, '\n')
    .replaceAll('\0', '\uFFFD')
    .replace(DECEPTIVE, (_, flag?: string) => flag ?? '');
}
