declare global {
  namespace App {
    interface Error {
      message: string;
    }
    interface PageState {
      /** The person came here to write: the composer takes the focus. */
      isWriting?: boolean;
    }
  }
}

export {};
