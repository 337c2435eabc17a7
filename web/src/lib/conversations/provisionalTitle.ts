/** The title of a conversation until the server has named it: the first words of its question. */
import { plainText, shortened } from '$lib/markdown/plainText';

const LONGEST = 60;

/** The first sentence, without markup, cut between words. The server does the same in core/titles.py. */
export function titleOfQuestion(question: string): string {
  const texts = [plainText(question.slice(0, 4_000)), question.trim().replace(/\s+/g, ' ')];
  const text = texts.find(isVisible) ?? 'Question';
  const sentence = text.split(/(?<=[.!?。？！])\s/)[0]!.replace(/[ .!。！:;,]+$/, '');
  return shortened(isVisible(sentence) ? sentence : text.slice(0, LONGEST), LONGEST);
}

function isVisible(text: string): boolean {
  return /[^\s\p{C}\p{Z}]/u.test(text);
}
