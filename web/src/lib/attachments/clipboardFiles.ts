/** Files from the clipboard. If it holds text as well, the text is pasted as text. */
import type { DroppedFile } from '$lib/files/droppedFiles';

/** Brings them along; without any, the browser pastes as it always does. */
export function bringPasted(event: ClipboardEvent, bring: (brought: DroppedFile[]) => void): void {
  const brought = pastedFrom(event.clipboardData);
  if (!brought.length) return;
  event.preventDefault();
  bring(brought);
}

export function pastedFrom(clipboard: DataTransfer | null, at: Date = new Date()): DroppedFile[] {
  const files = [...(clipboard?.files ?? [])];
  if (!files.length || clipboard?.types.includes('text/plain')) return [];
  return files.map((file, n) => ({ path: nameOf(file, n, at), file }));
}

/** A picture that was copied is called image.png by every browser. */
function nameOf(file: File, n: number, at: Date): string {
  if (!/^image\.\w+$/.test(file.name)) return file.name;
  const time = [at.getHours(), at.getMinutes(), at.getSeconds()]
    .map((each) => String(each).padStart(2, '0'))
    .join('');
  return file.name.replace('image', `pasted-${time}${n ? `-${n + 1}` : ''}`);
}
