/** Names of the voices that are writing out of view. */

/** The height the composer covers at the foot of the view. */
const COVERED_PX = 140;

/** "Ada is writing", or nothing. Where texts stand side by side only a card that begins out of sight counts. */
export function offscreenWriters(view: HTMLElement, isFollowing: boolean): string {
  const bottom = view.getBoundingClientRect().bottom - COVERED_PX;
  const hidden = [...view.querySelectorAll<HTMLElement>('article.reply[data-state="writing"]')].filter(
    (card) => {
      const box = card.getBoundingClientRect();
      return (isFollowing ? box.bottom : box.top) > bottom;
    },
  );
  if (hidden.length === 0) return '';
  const names = hidden.map((card) => card.querySelector('h3')?.textContent ?? '').filter(Boolean);
  return names.length === 1 ? `${names[0]} is writing` : 'Replies are being written';
}
