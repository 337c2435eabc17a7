/** ARIA roles for a table laid out as cards: some browsers drop the native ones. */
export const TABLE = { role: 'table' } as const;
export const GROUP = { role: 'rowgroup' } as const;
export const ROW = { role: 'row' } as const;
export const HEAD = { role: 'columnheader' } as const;
export const TITLE = { role: 'rowheader' } as const;
export const CELL = { role: 'cell' } as const;
