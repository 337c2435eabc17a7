import { expect, it } from 'vitest';
import { place } from './placement';

const screen = { width: 400, height: 800 };
const menu = { width: 200, height: 120 };
const at = (left: number, top: number) => ({ left, top, right: left + 30, bottom: top + 30 });

it('puts a menu under its button, or over it when there is no room', () => {
  expect(place(at(20, 100), menu, screen, 'bottom-start')).toEqual({ left: 20, top: 136 });
  expect(place(at(20, 740), menu, screen, 'bottom-start')).toEqual({ left: 20, top: 614 });
  expect(place(at(20, 10), menu, screen, 'top-start')).toEqual({ left: 20, top: 46 });
});

it('never lets it leave the screen', () => {
  expect(place(at(360, 100), menu, screen, 'bottom-start').left).toBe(192);
  expect(place(at(0, 100), menu, screen, 'bottom-end').left).toBe(8);
});
