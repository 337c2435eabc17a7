/** The files a reply was sent, and those it cites. */
import type { Receipt } from '$lib/api/types';
import { markIn } from '$lib/markdown/citations';
import { layersOf, type PiecePlace } from './receipt';

type FilePlace = Extract<PiecePlace, { kind: 'file' }>;

export interface FileUse {
  /** "docs/plan.md:12-40" */
  name: string;
  place: FilePlace;
  /** "found by search", "always sent", "not sent" */
  how: string;
  isCited: boolean;
}

const HOW: Record<string, string> = { always: 'always sent', retrieved: 'found by search' };

/** Lists the files of a reply; the files its text cites come first. */
export function filesUsedBy(receipt: Receipt, said: string): FileUse[] {
  const cited = citedIn(said);
  const shown = layersOf(receipt).flatMap(({ layer, pieces }) =>
    pieces.flatMap(({ name, place }) =>
      place?.kind === 'file' ? [{ name, place, how: HOW[layer] ?? layer, isCited: false }] : [],
    ),
  );
  const known = shown.map((each) => ({ ...each, isCited: cited.some((mark) => overlaps(mark, each.place)) }));
  const unseen = cited.filter((mark) => !shown.some(({ place }) => overlaps(mark, place)));
  return [
    ...known.filter(({ isCited }) => isCited),
    ...unseen.map((place) => ({ name: nameOf(place), place, how: 'not sent', isCited: true })),
    ...known.filter(({ isCited }) => !isCited),
  ];
}

function citedIn(said: string): FilePlace[] {
  const marks = [...said.matchAll(/\[[^[\]\n]{1,420}\]/g)].map(([text]) => markIn(text));
  const places = marks.flatMap((mark) => (mark?.kind === 'file' ? [mark] : []));
  return places.filter((mark, n) => places.findIndex((place) => nameOf(place) === nameOf(mark)) === n);
}

function overlaps(mark: FilePlace, shown: FilePlace): boolean {
  if (mark.path !== shown.path) return false;
  return shown.from === null || (mark.from! <= shown.to! && shown.from <= mark.to!);
}

function nameOf({ path, from, to }: FilePlace): string {
  return `${path}:${from === to ? from : `${from}-${to}`}`;
}
