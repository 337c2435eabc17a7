/** Placement of popovers: beside the anchor, flipped when there is no room, never off the screen. */

export type Placement = 'bottom-start' | 'bottom-end' | 'top-start' | 'top-end' | 'top' | 'bottom' | 'right';

interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}
interface Size {
  width: number;
  height: number;
}

const MARGIN = 8;

export function place(
  anchor: Box,
  size: Size,
  screen: Size,
  placement: Placement,
  gap = 6,
): { left: number; top: number } {
  if (placement === 'right')
    return {
      left: anchor.right + gap,
      top: clamp(middle(anchor.top, anchor.bottom, size.height), size.height, screen.height),
    };
  const [side, align] = placement.split('-');
  const above = anchor.top - gap - size.height;
  const below = anchor.bottom + gap;
  const fitsAbove = above >= MARGIN;
  const fitsBelow = below + size.height <= screen.height - MARGIN;
  const isAbove = side === 'top' ? fitsAbove || !fitsBelow : !fitsBelow && fitsAbove;
  const left =
    align === 'start'
      ? anchor.left
      : align === 'end'
        ? anchor.right - size.width
        : middle(anchor.left, anchor.right, size.width);
  return {
    left: clamp(left, size.width, screen.width),
    top: clamp(isAbove ? above : below, size.height, screen.height),
  };
}

function middle(start: number, end: number, length: number): number {
  return (start + end) / 2 - length / 2;
}

function clamp(start: number, length: number, room: number): number {
  return Math.max(MARGIN, Math.min(start, room - length - MARGIN));
}

export function moveBeside(element: HTMLElement, anchor: Element, placement: Placement, gap?: number): void {
  const size = { width: element.offsetWidth, height: element.offsetHeight };
  const screen = { width: document.documentElement.clientWidth, height: window.innerHeight };
  const { left, top } = place(anchor.getBoundingClientRect(), size, screen, placement, gap);
  element.style.left = `${Math.round(left)}px`;
  element.style.top = `${Math.round(top)}px`;
}
