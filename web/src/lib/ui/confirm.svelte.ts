/** Asks before what cannot be undone: `if (await confirm({…})) remove()`. */

export interface Question {
  title: string;
  body?: string;
  /** The verb on the button: "Delete branch", never "OK". */
  action: string;
  danger?: boolean;
}

class Confirmations {
  asked = $state.raw<Question | null>(null);
  #answer: (isYes: boolean) => void = () => {};

  ask(question: Question): Promise<boolean> {
    this.answer(false);
    this.asked = question;
    return new Promise((resolve) => (this.#answer = resolve));
  }

  answer(isYes: boolean): void {
    this.asked = null;
    this.#answer(isYes);
  }
}

export const confirmations = new Confirmations();

export function confirm(question: Question): Promise<boolean> {
  return confirmations.ask(question);
}

/** Before a form is closed whose words would be lost. */
export function throwAway(): Promise<boolean> {
  return confirm({
    title: 'Discard your changes?',
    body: 'They have not been saved.',
    action: 'Discard',
    danger: true,
  });
}
