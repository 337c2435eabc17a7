/** The current time as reactive state, updated each second while a component reads it. */
import { createSubscriber } from 'svelte/reactivity';

function ticking(every: number): () => number {
  const subscribe = createSubscriber((update) => {
    const timer = setInterval(update, every);
    return () => clearInterval(timer);
  });
  return () => {
    subscribe();
    return Date.now();
  };
}

export const eachSecond = ticking(1_000);
