import { expect, it } from 'vitest';
import { RenderBudget } from './renderBudget';

function setUp() {
  const clock = { now: 0 };
  const allowance = new RenderBudget(() => clock.now);
  const work = (ms: number) => allowance.spend(() => (clock.now += ms));
  return { clock, work };
}

it('lets work be done until the time is used up, and never half of it', () => {
  const { work } = setUp();
  expect([work(300), work(300), work(1)]).toEqual([true, true, false]);
});

it('gives half of the time that passes back', () => {
  const { clock, work } = setUp();
  work(500);
  clock.now += 100;
  expect(work(1)).toBe(false);
  clock.now += 200;
  expect(work(1)).toBe(true);
});

it('never gives more than it had at first', () => {
  const { clock, work } = setUp();
  clock.now += 1_000_000;
  work(401);
  expect(work(1)).toBe(false);
});

it('forgets most of one work that took far too long', () => {
  const { clock, work } = setUp();
  work(60_000);
  clock.now += 801;
  expect(work(1)).toBe(true);
});
