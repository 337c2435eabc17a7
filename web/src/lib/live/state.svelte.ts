/** Everything this tab knows, as one value. Only snapshots and the stream replace it. */
import { EMPTY, type State } from './apply';
import type { Topic } from './items';

export class LiveState {
  value = $state.raw<State>(EMPTY);
  tables = $derived(this.value.tables);
  cursors = $derived(this.value.cursors);

  /** Whether a snapshot of the topic was read and the stream is followed from there. */
  follows(topic: Topic): boolean {
    return topic in this.cursors;
  }
}
