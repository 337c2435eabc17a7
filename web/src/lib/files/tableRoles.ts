/** Some browsers forget what the parts of a table are once they are laid out as cards: they are told. */
export const TABLE = { role: 'table' } as const;
export const GROUP = { role: 'rowgroup' } as const;
export const ROW = { role: 'row' } as const;
export const HEAD = { role: 'columnheader' } as const;
export const TITLE = { role: 'rowheader' } as const;
export const CELL = { role: 'cell' } as const;
