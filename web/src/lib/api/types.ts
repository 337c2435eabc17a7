/** The names components use for what the server says. One switch: these become re-exports of schema.d.ts. */

export type Visibility = 'open' | 'own_lane' | 'chosen';
export type Mode = 'quick' | 'parallel';
export type Tier = 'smart' | 'balanced' | 'fast' | 'cheap';
export type Membership = 'owner' | 'editor' | 'viewer';
export type MessageRole = 'user' | 'advisor' | 'critic' | 'synthesis';
export type MessageStatus = 'complete' | 'stopped' | 'interrupted' | 'failed';
export type TurnState = 'queued' | 'running' | 'complete' | 'stopped' | 'interrupted' | 'failed';

export interface User {
  id: string;
  name: string;
  email: string;
  role: 'admin' | 'member';
  suspended: boolean;
  created_at: number;
}

export interface ClientInfo {
  browser: string;
  system: string;
  address: string;
}

export interface Session {
  id: string;
  user_id: string;
  client_info: ClientInfo;
  created_at: number;
  last_active_at: number;
  project_id: string | null;
  conversation_id: string | null;
  is_current: boolean;
}

export interface ProjectSettings {
  default_models: string[];
  default_mode: string;
  context_strategy: 'smart' | 'balanced' | 'minimal';
  max_context_tokens: number;
  retrieval_config: { enabled: boolean; chunk_size: number; max_results: number };
}

export interface Project {
  id: string;
  name: string;
  description: string;
  instructions: string;
  settings: ProjectSettings;
  role: Membership;
  created_at: number;
  updated_at: number;
}

export interface Member {
  user_id: string;
  name: string;
  role: Membership;
}

export interface Voice {
  id: string;
  seat: number;
  name: string;
  model: string;
  persona_id: string | null;
}

export interface Conversation {
  id: string;
  project_id: string;
  owner_id: string;
  title: string;
  summary: string;
  round_count: number;
  mode: string;
  table: Voice[];
  visibility: Visibility;
  pinned: boolean;
  archived: boolean;
  is_answering: boolean;
  created_at: number;
  updated_at: number;
  parent_id: string | null;
  branch_round: number | null;
  branch_message_id: string | null;
}

export interface Usage {
  input_tokens: number;
  cached_tokens: number;
  output_tokens: number;
  reasoning_tokens: number;
  cost_micros: number | null;
  latency_ms: number;
  first_token_ms: number | null;
}

export interface Failure {
  code: string;
  message: string;
  detail: string | null;
}

export interface Thinking {
  text: string;
  seconds: number;
}

export interface Message {
  id: string;
  conversation_id: string;
  round_number: number;
  turn_id: string;
  speaker: string;
  role: MessageRole;
  content: string;
  status: MessageStatus;
  created_by: string;
  created_at: number;
  voice: Voice | null;
  thinking: Thinking | null;
  usage: Usage | null;
  failure: Failure | null;
  reply_to_id: string | null;
  critique_of_id: string | null;
  replaces_id: string | null;
}

export interface Round {
  number: number;
  messages: Message[];
}

export interface Turn {
  id: string;
  conversation_id: string;
  round_number: number;
  purpose: 'ask' | 'retry' | 'continue';
  mode: string;
  table: Voice[];
  visibility: Visibility;
  state: TurnState;
  created_by: string;
  created_at: number;
  finished_at: number | null;
  message_id: string | null;
}

export interface Waiting {
  until: number;
  attempt: number;
  attempts: number;
  reason: string;
}

export interface Draft {
  id: string;
  turn_id: string;
  conversation_id: string;
  round_number: number;
  voice: Voice;
  role: string;
  content: string;
  thinking: string;
  number: number;
  started_at: number;
  replaces_id: string | null;
  waiting: Waiting | null;
}

export type Layer = 'system' | 'always' | 'rounds' | 'retrieved' | 'tools' | 'question';

export interface Segment {
  layer: Layer;
  role: 'system' | 'user' | 'assistant';
  text: string;
  reason: string;
  tokens: number;
  source_id: string | null;
  round_number: number | null;
  ends_cacheable: boolean;
  starts_message: boolean;
}

export interface LeftOut {
  layer: Layer;
  reason: string;
  tokens: number;
  source_id: string | null;
  round_number: number | null;
}

export interface Receipt {
  model: string;
  budget_tokens: number;
  segments: Segment[];
  left_out: LeftOut[];
}

export interface Prices {
  input_micros: number | null;
  cached_micros: number | null;
  output_micros: number | null;
}

export interface Abilities {
  tools: boolean;
  vision: boolean;
  streaming: boolean;
  thinking: boolean;
  code_execution: boolean;
}

export interface Model {
  key: string;
  provider: string;
  provider_name: string;
  model_id: string;
  display_name: string;
  tier: Tier;
  context_window: number;
  max_output_tokens: number;
  prices: Prices;
  abilities: Abilities;
  is_local: boolean;
  is_demo: boolean;
  is_available: boolean;
  unavailable_reason: string | null;
}

export interface Setup {
  needed: boolean;
  token_needed: boolean;
  instance_name: string;
}

export interface Me {
  user: User;
  session: Session;
  projects: Project[];
  cursor: number;
}

export interface Items<T> {
  items: T[];
}

export interface ConversationPage {
  items: Conversation[];
  next: string | null;
  cursor: number;
}

export interface ConversationSnapshot {
  conversation: Conversation;
  rounds: Round[];
  next_before: number | null;
  turns: Turn[];
  drafts: Draft[];
  cursor: number;
}

export interface RoundPage {
  rounds: Round[];
  next_before: number | null;
}

export interface ProjectSnapshot {
  project: Project;
  members: Member[];
  cursor: number;
}

export interface NewTurn {
  id: string;
  conversation_id?: string;
  project_id?: string;
  text: string;
  mode: Mode;
  voices: { model: string }[];
  visibility?: Visibility;
  reply_to_id?: string;
}

export interface TurnOpened {
  turn: Turn;
  conversation: Conversation;
  message: Message;
}
