import { redirect } from '@sveltejs/kit';
import { routes } from '$lib/routes';

export function load(): never {
  redirect(307, routes.newConversation);
}
