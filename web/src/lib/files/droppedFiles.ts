/** Files that a person drops or chooses, folders with their contents included. */

export interface DroppedFile {
  /** Below the folder that was dropped, if it was one. */
  path: string;
  file: File;
}

export function carriesFiles(event: DragEvent): boolean {
  return event.dataTransfer?.types.includes('Files') ?? false;
}

export function chosenFrom(list: FileList | null): DroppedFile[] {
  const chosen = [...(list ?? [])].map((file) => ({ path: file.webkitRelativePath || file.name, file }));
  return chosen.filter(({ path }) => !isLitter(path));
}

/** Tells whether a path belongs to an operating system or version control; such files are not uploaded. */
function isLitter(path: string): boolean {
  return /(^|\/)(\.DS_Store|Thumbs\.db|desktop\.ini|__MACOSX\/.*|\.(git|hg|svn)\/.*)$/.test(path);
}

/** Must be called before the event is over: afterwards the browser has emptied it. */
export async function droppedFrom(transfer: DataTransfer | null): Promise<DroppedFile[]> {
  const entries = [...(transfer?.items ?? [])].flatMap((item) => {
    const entry = item.kind === 'file' ? item.webkitGetAsEntry() : null;
    return entry ? [entry] : [];
  });
  const found = entries.length ? await Promise.all(entries.map((entry) => inside(entry))) : [];
  return entries.length
    ? found.flat().filter(({ path }) => !isLitter(path))
    : chosenFrom(transfer?.files ?? null);
}

async function inside(entry: FileSystemEntry): Promise<DroppedFile[]> {
  if (isFile(entry)) {
    const file = await new Promise<File>((resolve, reject) => entry.file(resolve, reject));
    return [{ path: entry.fullPath.replace(/^\//, ''), file }];
  }
  const found: DroppedFile[] = [];
  for (const each of await entriesIn(entry as FileSystemDirectoryEntry)) found.push(...(await inside(each)));
  return found;
}

/** A folder tells its entries a hundred at a time, and nothing when all are told. */
async function entriesIn(folder: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
  const reader = folder.createReader();
  const all: FileSystemEntry[] = [];
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) =>
      reader.readEntries(resolve, reject),
    );
    if (!some.length) return all;
    all.push(...some);
  }
}

function isFile(entry: FileSystemEntry): entry is FileSystemFileEntry {
  return entry.isFile;
}
