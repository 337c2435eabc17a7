/** What stands beside the page: the receipt of a reply, a file at some lines, or what came with a question. */
import type { Attachment } from '$lib/api/types';

export type Shown =
  | { kind: 'receipt'; messageId: string }
  | { kind: 'file'; projectId: string; fileId: string; from: number | null; to: number | null }
  | { kind: 'attachment'; attachment: Attachment }
  | { kind: 'tree'; conversationId: string };

class Inspector {
  shown = $state.raw<Shown | null>(null);

  /** The reply whose receipt is open. */
  messageId = $derived(this.shown?.kind === 'receipt' ? this.shown.messageId : null);

  /** The receipt from which a file was opened. */
  earlier = $state.raw<Shown | null>(null);

  /** The reply whose context was read last, while the panel is open. */
  receipt = $state.raw<string | null>(null);

  #before: Element | null = null;

  showReceipt(messageId: string): void {
    this.receipt = messageId;
    this.#open({ kind: 'receipt', messageId });
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

  /** While receipts are read, the one of the reply at hand. */
  follow(messageId: string): void {
    if (this.receipt !== null) this.receipt = messageId;
    if (this.messageId !== null && this.messageId !== messageId) this.shown = { kind: 'receipt', messageId };
  }

  /** Focus goes back to where it was, unless it went on already. */
  close(): void {
    const isInside = document.activeElement?.closest('[data-inspector]') ?? null;
    this.shown = null;
    this.earlier = null;
    this.receipt = null;
    if (isInside && this.#before instanceof HTMLElement) this.#before.focus({ preventScroll: true });
    this.#before = null;
  }

  goBack(): void {
    if (this.earlier) this.#open(this.earlier);
  }

  #open(shown: Shown): void {
    if (this.shown === null) this.#before = document.activeElement;
    const receipt = this.shown?.kind === 'receipt' ? this.shown : this.earlier;
    this.earlier = shown.kind === 'file' ? receipt : null;
    this.shown = shown;
  }
}

export const inspector = new Inspector();
