/** Announcements for screen readers; the one polite region of the page is in Announcer.svelte. */

class Announcements {
  said = $state.raw<{ id: number; text: string }[]>([]);
  #count = 0;

  say(text: string): void {
    const id = ++this.#count;
    this.said = [...this.said, { id, text }].slice(-5);
    // Long enough to be read out, then out of the way of someone walking through the page.
    setTimeout(() => (this.said = this.said.filter((each) => each.id !== id)), 8000);
  }
}

export const announcements = new Announcements();

export function announce(text: string): void {
  announcements.say(text);
}
