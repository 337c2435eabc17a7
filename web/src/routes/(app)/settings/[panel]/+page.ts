import { error } from '@sveltejs/kit';
import { PANELS } from '$lib/settings/panels';

export function load({ params }: { params: { panel: string } }): void {
  if (!PANELS.some(({ id }) => id === params.panel)) error(404);
}
