/** The names components use for what the server says; schema.d.ts is written from the server (`make types`). */
import type { components } from './schema';

type Schemas = components['schemas'];

/** The server says every field; OpenAPI calls those with a default optional. */
type Whole<T> = T extends (infer Item)[]
  ? Whole<Item>[]
  : T extends object
    ? { [Field in keyof T]-?: Whole<T[Field]> }
    : T;

/** Fields with a default may be left out of what is sent. */
type Sent<T, Defaulted extends keyof T> = Omit<T, Defaulted> & Partial<Pick<T, Defaulted>>;
/** The same, said the other way round: only these must be there. */
type Needing<T, Needed extends keyof T> = Pick<T, Needed> & Partial<T>;

export type Visibility = Schemas['Visibility'];
export type Tier = Schemas['Tier'];
export type ProjectRole = Schemas['ProjectRole'];
export type Step = Schemas['Step'];
export type Layer = Schemas['Layer'];

export type User = Whole<Schemas['User']>;
export type ClientInfo = Whole<Schemas['ClientInfo']>;
export type Session = Whole<Schemas['Session']>;
export type ProjectSettings = Whole<Schemas['ProjectSettings']>;
export type Project = Whole<Schemas['Project']>;
export type Member = Whole<Schemas['Member']>;
/** The name of someone who is or was in a project. */
export type Person = Whole<Schemas['Person']>;
export type PersonList = Whole<Schemas['PersonList']>;
export type Voice = Whole<Schemas['Voice']>;
export type Conversation = Whole<Schemas['Conversation']>;
export type Usage = Whole<Schemas['Usage']>;
export type Failure = Whole<Schemas['Failure']>;
export type Thinking = Whole<Schemas['Thinking']>;
export type Attachment = Whole<Schemas['Attachment']>;
export type Quote = Whole<Schemas['Quote']>;
export type Vote = Whole<Schemas['Vote']>;
export type Leaderboard = Whole<Schemas['Leaderboard']>;
export type VoteValue = Schemas['VoteValue'];
export type Replay = Whole<Schemas['Replay']>;
export type NewReplay = Sent<
  Schemas['NewReplay'],
  'from_round' | 'voices' | 'mode' | 'visibility' | 'chair' | 'cap_micros'
>;
export type ReplayProgress = Whole<Schemas['ReplayProgress']>;
export type ReplayView = Whole<Schemas['ReplayView']>;
export type ReplayEstimate = Whole<Schemas['ReplayEstimate']>;
export type Outline = Whole<Schemas['Outline']>;
export type Position = Whole<Schemas['Position']>;
export type Ranking = Whole<Schemas['Ranking']>;
export type StanceCell = Whole<Schemas['StanceCell']>;
export type Stance = Schemas['Stance'];
export type Critique = Whole<Schemas['Critique']>;
export type NoteVerdict = Schemas['NoteVerdict'];
export type Verdict = Schemas['Verdict'];
export type Message = Whole<Schemas['Message']>;
export type ReadReply = Whole<Schemas['ReadReply']>;
export type Round = Whole<Schemas['Round']>;
export type Turn = Whole<Schemas['Turn']>;
export type RetryNotice = Whole<Schemas['RetryNotice']>;
export type Draft = Whole<Schemas['Draft']>;
export type Segment = Whole<Schemas['Segment']>;
export type LeftOut = Whole<Schemas['LeftOut']>;
export type SegmentReason = Schemas['SegmentReason'];
export type LeftOutReason = Schemas['LeftOutReason'];
export type SourceLocation = Whole<Schemas['SourceLocation']>;
export type Receipt = Whole<Schemas['Receipt']>;
export type Estimate = Whole<Schemas['Estimate']>;
export type IndexPhase = Schemas['IndexPhase'];
export type FileMetadata = Whole<Schemas['FileMetadata']>;
export type ProjectFile = Whole<Schemas['ProjectFile']>;
export type FileVersion = Whole<Schemas['FileVersion']>;
export type FileList = Whole<Schemas['FileList']>;
export type FileText = Whole<Schemas['FileText']>;
export type Uploaded = Whole<Schemas['Uploaded']>;
export type VersionList = Whole<Schemas['VersionList']>;
export type Hit = Whole<Schemas['Hit']>;
export type Match = Schemas['Match'];
export type Passage = Whole<Schemas['Passage']>;
export type SearchScope = Schemas['SearchScope'];
export type Span = Whole<Schemas['Span']>;
export type SearchAnswer = Whole<Schemas['SearchAnswer']>;
export type Filters = Partial<Schemas['Filters']>;
export type ContextStrategy = Schemas['ContextStrategy'];
export type Prices = Whole<Schemas['Prices']>;
export type Abilities = Whole<Schemas['Abilities']>;
/** As the picker shows it: with its provider's name, and whether it can answer. */
export type ModelView = Whole<Schemas['ModelView']>;

export type Effort = Schemas['Effort'];

export type Ownership = Schemas['Ownership'];
export type PersonaProfile = Whole<Schemas['PersonaProfile']>;
export type Persona = Whole<Schemas['Persona']>;
/** A model, a persona, or a persona that is to speak through a certain model. */
export type VoiceRef = Whole<Schemas['VoiceRef']>;
export type SavedTable = Whole<Schemas['SavedTable']>;
export type TableSpec = Whole<Schemas['TableSpec']>;
export type Defaults = Whole<Schemas['Defaults']>;
export type PersonaList = Whole<Schemas['PersonaList']>;
export type TableList = Whole<Schemas['TableList']>;

export type Tree = Whole<Schemas['Tree']>;
export type TreeNode = Whole<Schemas['TreeNode']>;
export type TreeRound = Whole<Schemas['TreeRound']>;
export type Comparison = Whole<Schemas['Comparison']>;
export type DeletionPreview = Whole<Schemas['DeletionPreview']>;
export type MessageDeletionPreview = Whole<Schemas['MessageDeletionPreview']>;

export type SetupState = Whole<Schemas['SetupState']>;
export type Me = Whole<Schemas['Me']>;
export type ModelList = Whole<Schemas['ModelList']>;
export type SessionList = Whole<Schemas['SessionList']>;
export type ConversationList = Whole<Schemas['ConversationList']>;
export type ConversationPage = Whole<Schemas['ConversationPage']>;
export type OlderRounds = Whole<Schemas['OlderRounds']>;
export type ProjectPage = Whole<Schemas['ProjectPage']>;
export type OpenedTurn = Whole<Schemas['OpenedTurn']>;

export type NewSetup = Sent<Schemas['NewSetup'], 'token'>;
export type NewProject = Sent<Schemas['NewProject'], 'description' | 'instructions'>;
export type ProjectChange = Schemas['ProjectChange'];
export type NewEstimate = Needing<Schemas['NewEstimate'], 'text' | 'voices'>;
export type NewEdit = Needing<Schemas['NewEdit'], 'id' | 'text' | 'voices'>;
export type NewTurn = Needing<Schemas['NewTurn'], 'id' | 'text' | 'voices'>;
