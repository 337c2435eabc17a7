/** The state of the inspector, the panel beside the page: a reply's context, files or details, a file, an attachment, or the branch map. */
import type { Attachment } from '$lib/api/types';

/** A side of a reply in the inspector: its receipt, its files, its details. */
export type Side = 'receipt' | 'files' | 'details';

export type Shown =
  | { kind: Side; messageId: string }
  | { kind: 'file'; projectId: string; fileId: string; from: number | null; to: number | null }
  | { kind: 'attachment'; attachment: Attachment }
  | { kind: 'tree'; conversationId: string };

class Inspector {
  shown = $state.raw<Shown | null>(null);

  /** The reply that is looked at. */
  messageId = $derived(this.shown && 'messageId' in this.shown ? this.shown.messageId : null);

  /** The side of a reply from which a file was opened. */
  earlier = $state.raw<Shown | null>(null);

  /** The reply that was looked at last, while the panel is open. */
  receipt = $state.raw<string | null>(null);

  #before: Element | null = null;

  showReceipt(messageId: string): void {
    this.receipt = messageId;
    this.#open({ kind: 'receipt', messageId });
  }

  /** Another side of the same reply. */
  turnTo(side: Side): void {
    if (this.receipt !== null) this.#open({ kind: side, messageId: this.receipt });
  }

  showFile(projectId: string, fileId: string, from: number | null = null, to: number | null = from): void {
    this.#open({ kind: 'file', projectId, fileId, from, to });
  }

  showAttachment(attachment: Attachment): void {
    this.#open({ kind: 'attachment', attachment });
  }

  showTree(conversationId: string): void {
    this.#open({ kind: 'tree', conversationId });
  }

  /** While replies are looked at, the one at hand, from the same side. */
  follow(messageId: string): void {
    if (this.receipt !== null) this.receipt = messageId;
    if (this.shown && 'messageId' in this.shown && this.shown.messageId !== messageId)
      this.shown = { kind: this.shown.kind, messageId };
  }

  /** Focus goes back to where it was, unless it went on already. */
  close(): void {
    const isInside = document.activeElement?.closest('[data-inspector]') ?? null;
    const back = this.#whereFrom();
    this.shown = null;
    this.earlier = null;
    this.receipt = null;
    if (isInside) back?.focus({ preventScroll: true });
    this.#before = null;
  }

  /** Returns the element the inspector was opened from; a card drawn anew is found by its reply. */
  #whereFrom(): HTMLElement | null {
    if (this.#before?.isConnected) return this.#before instanceof HTMLElement ? this.#before : null;
    return this.receipt === null
      ? null
      : document.querySelector<HTMLElement>(`[data-message="${this.receipt}"]`);
  }

  goBack(): void {
    if (this.earlier) this.#open(this.earlier);
  }

  #open(shown: Shown): void {
    if (this.shown === null) this.#before = document.activeElement;
    const reply = this.shown && 'messageId' in this.shown ? this.shown : this.earlier;
    this.earlier = shown.kind === 'file' ? reply : null;
    this.shown = shown;
  }
}

export const inspector = new Inspector();
