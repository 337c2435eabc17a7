/** Opens the source of a receipt's segment: the file at its lines, or the message. */
import { goto } from '$app/navigation';
import type { Conversation } from '$lib/api/types';
import { withErrorToast } from '$lib/ui/errorToast';
import { store } from '$lib/live/store.svelte';
import { inspector } from '$lib/panels/inspector.svelte';
import { routes } from '$lib/routes';
import { toast } from '$lib/ui/toasts.svelte';
import { viewport } from '$lib/ui/viewport.svelte';
import type { PiecePlace } from './receipt';

export async function openSegment({ id, project_id }: Conversation, place: PiecePlace): Promise<void> {
  if (place.kind === 'round') {
    if (viewport.isNarrow) inspector.close(); // it lies over the page
    return goto(`${routes.conversation(id)}#round-${place.number}`);
  }
  if (!store.hasFiles(project_id))
    await withErrorToast('The files could not be listed.', store.loadFiles(project_id));
  const file = store.filesOf(project_id).find((file) => file.path === place.path);
  if (file) inspector.showFile(project_id, file.id, place.from, place.to);
  else toast({ text: `${place.path} is no longer in the project.` });
}
