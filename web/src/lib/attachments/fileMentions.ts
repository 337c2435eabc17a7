/** `#path` in the message field: finds the project file that is being named, to attach it. */
import type { ProjectFile } from '$lib/api/types';
import { score } from '$lib/commands/match';

const MOST = 6;
/** What is carried along goes through this browser. */
const MOST_BYTES = 20_000_000;

/** What stands between a # and the caret; a heading's # and a number are nobody's file. */
export function openFileMentionAt(text: string, caret: number): { start: number; typed: string } | null {
  const match = /(?:^|\s)#([^\s#]{0,80})$/u.exec(text.slice(0, caret));
  if (!match || /^\d+$/.test(match[1]!)) return null;
  return { start: caret - match[1]!.length - 1, typed: match[1]! };
}

/** Those whose path holds what was typed, the nearest first. */
export function filesMatching(typed: string, files: ProjectFile[]): ProjectFile[] {
  return files
    .filter((file) => file.size_bytes <= MOST_BYTES)
    .map((file) => ({ file, score: score(file.path, typed) }))
    .filter((each) => each.score > 0)
    .sort((a, b) => b.score - a.score)
    .slice(0, MOST)
    .map(({ file }) => file);
}
