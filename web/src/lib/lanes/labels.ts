/**
 * Names in a review in place of the labels its writer knew the answers by, as core/labels.py puts them:
 * both are held to tests/vectors/labels.
 */
import type { ReadReply } from '$lib/api/types';

const WORDS =
  'answers?|responses?|repl(?:y|ies)|candidates?|antwort(?:en)?|réponses?|respuestas?|rispost[ae]|respostas?' +
  '|antwoord(?:en)?|svar(?:et)?|odpowiedź|ответ|回答|答案|응답';
const LATIN = 'A-Za-z0-9À-ɏ_';
const LABEL = new RegExp(`(?:(?<![${LATIN}])(${WORDS})[ \\t]*)?(?<![${LATIN}])([A-Z])(?![${LATIN}+#])`, 'gi');
const AFTER = new RegExp(
  `(?:^|[\\n.,;:!?…>=<→≻≈~/&|+(–—-]|(?<![${LATIN}])(?:and|or|but|while|whereas|than|over|as|with|both|to|from|like` +
    '|unlike|though|because|since|that|then|only|between|of|prefer|rank|ranked|put|place|placed|think|believe|find' +
    '|choose|chose|is|und|oder|aber|als|mit|dann|von|et|ou|mais|que|de|puis|y|o|pero|con|e|ma|poi|och|en|na|и|или' +
    `|${WORDS}))[ \\t]*[*_"'“”‘’«»\`\\[({]*$`,
  'i',
);
const ARTICLE =
  /^[ \t]+(?!(?:is|was|has|had|does|did|gives|answers|misses|lacks|explains|covers|would|could|can|should|will|seems|stays|says|and|or|but|over|vs|versus|then|beats|ist|hat|und|oder|est|et|es|y)\b)[a-zà-ɏ]/;
const CONTEXT = 40;

/** The text as it is where nothing was read under a label. */
export function withNames(text: string, read: ReadReply[]): string {
  const names = new Map(
    read.filter(({ label }) => label).map(({ label, name }) => [label.split(' ').at(-1)!, name]),
  );
  if (!names.size) return text;
  return text.replace(LABEL, (found: string, word: string | undefined, letter: string, at: number) => {
    const name = names.get(letter);
    const isNamed = name !== undefined && (word !== undefined || standsAsName(text, at, letter));
    return isNamed ? name : found;
  });
}

function standsAsName(text: string, at: number, letter: string): boolean {
  if (letter === 'A' && ARTICLE.test(text.slice(at + 1, at + CONTEXT))) return false;
  return AFTER.test(text.slice(Math.max(0, at - CONTEXT), at));
}
