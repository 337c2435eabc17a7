/** Whether the palette and the sheet of shortcuts are open. */

class Opening {
  isOpen = $state(false);

  open(): void {
    this.isOpen = true;
  }

  toggle(): void {
    this.isOpen = !this.isOpen;
  }
}

export const palette = new Opening();
export const sheet = new Opening();
