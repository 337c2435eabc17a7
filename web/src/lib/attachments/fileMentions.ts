/** `#path` in the message field: finds the project file that is being named, to attach it. */
import type { ProjectFile } from '$lib/api/types';
import { score } from '$lib/commands/match';

const MOST = 6;
/** The largest file that can be attached by its name: its content passes through this browser. */
const MOST_BYTES = 20_000_000;

/** Returns the text between a # and the caret; null for a heading's # and for a number. */
export function openFileMentionAt(text: string, caret: number): { start: number; typed: string } | null {
  const match = /(?:^|\s)#([^\s#]{0,80})$/u.exec(text.slice(0, caret));
  if (!match || /^\d+$/.test(match[1]!)) return null;
  return { start: caret - match[1]!.length - 1, typed: match[1]! };
}

/** Returns the files whose path contains the typed text, best match first. */
export function filesMatching(typed: string, files: ProjectFile[]): ProjectFile[] {
  return files
    .filter((file) => file.size_bytes <= MOST_BYTES)
    .map((file) => ({ file, score: score(file.path, typed) }))
    .filter((each) => each.score > 0)
    .sort((a, b) => b.score - a.score)
    .slice(0, MOST)
    .map(({ file }) => file);
}
