/** Options of openSite. */
export interface Options {
  /** Reads objects; the global fetch by default. */
  fetch?: typeof globalThis.fetch;
  /** For how long an object is kept in memory, in milliseconds; 5 minutes by default. */
  maxAge?: number;
  /** For how long a fetch may take, its body included, in milliseconds; 10 seconds by default. */
  timeout?: number;
  /** How much text is kept in memory, in UTF-16 code units; 32 Mi by default. */
  maxLength?: number;
  /**
   * Public keys, as `followpress key` prints them. With them every object is checked: what the answers are made from
   * is what one of these keys has signed. An answer that cannot be checked is a 503, whose `cause` is a ProofError.
   */
  keys?: string[];
  /** Takes a site that is older than one that this browser has seen. */
  allowRollback?: boolean;
  /** Public keys of fallbacks: profiles and badges may also be what one of these has refreshed and signed. */
  refreshedKeys?: string[];
  /** Is called whenever a root was checked. */
  verified?: (proof: Proof) => void;
  /** Is called whenever an object was checked, and with the error if it is not believed or could not be read. */
  checked?: (key: string, error?: Error) => void;
}

/** What was signed. */
export interface Proof {
  /** Names the site, as do the keys that have signed it. */
  origin: string;
  /** Of the roots of the site. */
  counter: number;
  asOf: string;
  /** SHA-256 of `_site`. */
  digest: string;
  root: Awaited<ReturnType<Site['root']>>;
}

/** Why an object is not believed. */
export interface ProofError extends Error {
  /**
   * altered: it is not what was signed. unsigned: no key of `keys` has signed the site. older: a newer site was seen.
   * ahead: its counter is more than a day ahead of this browser's clock. between: another site is being published.
   * unsupported: this browser, or a page over HTTP, cannot check signatures, or the key is none.
   */
  readonly code: 'altered' | 'unsigned' | 'older' | 'ahead' | 'between' | 'unsupported';
  /** Of the object. */
  readonly key: string;
}

/** An answer as the server gives it. */
export interface Answer {
  /** HTTP status. 503 if an object could not be read: `cause` says why. */
  status: number;
  /** Content type; "" for an answer without a body. */
  type: string;
  /** JSON, but for a picture, a feed, and for pages and scripts of the explorer. */
  body: string;
  cause?: Error;
  /** What a live site said of the objects that the answer is made from; others do not say it. */
  heads?: Heads;
  asOf?: string;
}

/** The newest block of each chain, by the chain's number. */
export type Heads = Record<string, number>;

/** The body of an answer with another status than 200 (RFC 9457). */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  response: string;
}

/** An answer with another status than 200. */
export declare class ApiError extends Error {
  readonly status: number;
  readonly problem: Problem;
}

/** An address in any letter case, or a name. */
export type User = string;

/** A decimal. */
export type TokenID = string;

export interface Profile {
  name: string;
  avatar: string;
  header: string;
  display: string;
  records: Record<string, unknown>;
  chains: Record<string, unknown>;
  /** Milliseconds since 1970. */
  fresh: number;
  resolver: string;
  errors: Record<string, unknown>;
}

/** The profile of an account with a name. */
export interface NamedProfile {
  name: string;
  address: string;
  avatar: string;
  records: Record<string, unknown>;
  updated_at: string;
}

export interface Ranks {
  mutuals_rank: string;
  followers_rank: string;
  following_rank: string;
  top8_rank: string;
  blocks_rank: string;
}

export interface Account {
  address: string;
  ens: Profile & { updated_at: string };
}

export interface ListAccount extends Account {
  is_primary_list: boolean;
  primary_list: TokenID | null;
}

export interface Details {
  address: string;
  ens: Profile;
  ranks: Ranks;
  primary_list: TokenID | null;
}

export interface Stats {
  followers_count: number;
  following_count: number;
}

export interface ListRecord {
  version: number;
  record_type: string;
  data: string;
  /** Left out with includeTags: false. */
  tags: string[];
}

/** A followed account. `ens` is there with include: 'ens', if the account has a name. */
export interface Followed extends ListRecord {
  address: string;
  is_mutual?: boolean;
  is_blocked?: boolean;
  is_muted?: boolean;
  ens?: NamedProfile;
}

/** An account found in a search. A site with api=spec leaves `address` out. */
export interface FoundFollowed extends ListRecord {
  address?: string;
  ens: { name: string; avatar: string };
}

interface FollowerState {
  efp_list_nft_token_id: TokenID;
  address: string;
  tags: string[];
  is_following: boolean;
  is_blocked: boolean;
  is_muted: boolean;
}

export interface Follower extends FollowerState {
  updated_at: string;
  is_mutual?: boolean;
  ens?: NamedProfile;
}

export interface FoundFollower extends FollowerState {
  ens: { name: string; avatar: string };
}

export interface TagSummary {
  tags: string[];
  tagCounts: { tag: string; count: number }[];
  taggedAddresses: { address: string; tag: string }[];
}

export interface State {
  follow: boolean;
  block: boolean;
  mute: boolean;
}

export interface ButtonState {
  token_id: TokenID | null;
  address: string;
  state: State;
}

/** A state of a batch; of a name that nobody has there is none. */
export type BatchState = ButtonState | { token_id: TokenID; address: string | null; state: null; error: string };

export interface Event {
  id: number;
  fancy_id: string;
  name: string;
  event_url: string;
  image_url: string;
  country: string;
  city: string;
  description: string;
  year: number;
  start_date: string;
  end_date: string;
  expiry_date: string;
}

export interface Badge {
  eventId: string;
  participated: boolean;
  collection: { event: Event; tokenId: string; owner: string } | null;
}

export interface Recommended {
  name: string | null;
  address: string;
  avatar: string | null;
  header: string | null;
  class: string | null;
}

export interface RecommendedDetails {
  address: string;
  ens: { name: string; avatar: string; records: Record<string, unknown> };
  stats: Stats;
  ranks: Ranks;
}

export interface RankedAccount extends Ranks {
  address: string;
  name: string | null;
  avatar: string | null;
  header: string | null;
  mutuals: string;
  following: string;
  followers: string;
  blocks: string;
  top8: string;
  updated_at: string;
}

export interface Board {
  last_updated: string;
  results: RankedAccount[];
}

export interface Limits {
  limit?: number;
  offset?: number;
}

export interface Page extends Limits {
  sort?: 'latest' | 'earliest' | 'followers';
  /** Only entries with one of these tags: a list with commas. */
  tags?: string | readonly string[];
  /** What entries have too, and which are shown too: one of these words, or several with commas. */
  include?: Include | readonly Include[] | (string & {});
}

/** ens: names and texts. mutuals: whether both follow each other. blocked, muted: such entries too. */
export type Include = 'blocked' | 'ens' | 'muted' | 'mutuals';

export interface Search extends Limits {
  /** Part of an address or a name, letter case ignored. */
  term?: string;
}

/** Which rows are wanted, and how many. */
export interface RowsPage extends Limits {
  /** latest by default. `followers` needs a site with api=efp. */
  sort?: 'latest' | 'earliest' | 'followers';
  /** Only rows with one of these tags. */
  tags?: readonly string[];
  /** Only rows with this in the address or the name, letter case ignored. */
  term?: string;
  /** Only follows: without accounts that are blocked or muted, or that block or mute. */
  follows?: boolean;
}

/** An account that a list holds, also one that it blocks or mutes. */
export interface HeldRow {
  address: string;
  /** "" if it has none. */
  name: string;
  avatar: string;
  tags: string[];
  /**
   * How many follow it, from 100 on about: rounded down to two digits, as far as the order of the table allows. A site
   * with api=spec leaves it out.
   */
  followers?: number;
}

/** An account whose primary list holds the subject. */
export interface HolderRow extends HeldRow {
  token: TokenID;
  header: string;
  /** What the subject's list says of it: 0 nothing, 1 follows, 2 blocks, 4 mutes, or 6. */
  state: number;
  /** When the record was added, in milliseconds since 1970; 0 if that is not known. */
  added: number;
  /** How many follow it. */
  followers: number;
  /** 0 if it has none. */
  mutualsRank: number;
}

/** A page of rows. */
export interface Rows<Row> {
  /** How many rows there are in all, whatever tags, term and follows say. */
  total: number;
  /** Fewer than the limit at the end. */
  rows: Row[];
}

/** Which operations are wanted. */
export interface Operations extends Limits {
  /** How far back from the date of the site: 1, 24, 168 (by default), 720 or 999 hours. */
  interval?: 'hour' | 'day' | 'week' | 'month' | 'all';
  /** Only one kind: 1 follow, 2 unfollow, 3 tag, 4 untag. */
  opcode?: 1 | 2 | 3 | 4;
  /** Only operations until then, in seconds since 1970; the interval ends there too. */
  start?: number;
  /** Only operations with exactly this tag. */
  tag?: string;
}

/** What a list did to an account. */
export interface Operation {
  /** Who did it; of activity, whom it was done to. */
  address: string;
  name: string | null;
  avatar: string | null;
  /** The list that did it. */
  token_id: TokenID;
  action: 'follow' | 'unfollow' | 'tag' | 'untag';
  opcode: 1 | 2 | 3 | 4;
  /** The operation as the contract has it, in hexadecimal. */
  op: string;
  /** "" of a follow or an unfollow. */
  tag: string;
  updated_at: string;
}

/** What a page of operations has. */
export interface OperationsSummary {
  /** "168:00:00(hrs)" */
  interval: string;
  /** "all", or the opcode. */
  opcode: string;
  total: number;
  total_follows: number;
  total_unfollows: number;
  total_tags: number;
  total_untags: number;
}

/** What users and lists have. */
interface Both {
  /**
   * A page of accounts with their names and avatars, for lists that people read. Blocked and
   * muted ones are among them. A site with api=spec has `following` only, of those that the
   * list follows.
   */
  rows(kind: 'following', params?: RowsPage): Promise<Rows<HeldRow>>;
  rows(kind: 'followers', params?: RowsPage): Promise<Rows<HolderRow>>;
  rows(kind: 'following' | 'followers', params?: RowsPage): Promise<Rows<HeldRow | HolderRow>>;
  details(): Promise<Details>;
  /** The member's name is the site's configuration: `poaps`, or `badges` with api=spec. */
  badges(): Promise<Record<string, Badge[]>>;
  stats(): Promise<Stats>;
  following(params?: Page): Promise<{ following: Followed[] }>;
  allFollowing(params?: Page): Promise<{ following: Followed[] }>;
  followers(params?: Page): Promise<{ followers: Follower[] }>;
  allFollowers(params?: Page): Promise<{ followers: Follower[] }>;
  latestFollowers(params?: Limits): Promise<{ followers: Follower[] }>;
  searchFollowing(params?: Search): Promise<{ following: FoundFollowed[] }>;
  searchFollowers(params?: Search): Promise<{ followers: FoundFollower[] }>;
  allFollowingAddresses(): Promise<string[]>;
  recommended(params?: Limits): Promise<{ recommended: Recommended[] }>;
  recommendedDetails(params?: Limits): Promise<{ recommended: RecommendedDetails[] }>;
  /** An SVG picture: the QR code of the address of the person's page. */
  qr(): Promise<string>;
  /** State of the subject's list towards a user. */
  buttonState(user: User): Promise<ButtonState>;
}

export interface Relationship {
  is_following: boolean;
  is_followed_by: boolean;
  is_blocked: boolean;
  is_blocked_by: boolean;
  is_muted: boolean;
  is_muted_by: boolean;
}

export interface UserMethods extends Both {
  account(): Promise<Account>;
  lists(): Promise<{ primary_list: TokenID | null; lists: TokenID[] }>;
  primaryList(): Promise<{ primary_list: TokenID | null }>;
  ens(): Promise<{ ens: NamedProfile | { [member in keyof NamedProfile]: member extends 'address' ? string : null } }>;
  simpleProfile(): Promise<{ address: string; display_name: string; avatar: string; url: string } & Stats>;
  listRecords(): Promise<{ records: ListRecord[] }>;
  tags(): Promise<{ address: string } & TagSummary>;
  taggedAs(): Promise<{ address: string } & TagSummary>;
  /** The URL of the user's avatar; a 404 if there is none with http or https. */
  ensAvatar(): Promise<string>;
  /** What the primary lists of the user and of another one say of each other. */
  relationship(other: User): Promise<{ source: string; target: string; state: Relationship }>;
  /** Whom the user's primary list holds with a tag, or whose primary lists hold the user with it. */
  relationships(
    params: { tag: string; direction: 'in' | 'incoming' | 'out' | 'outgoing' } & Limits,
  ): Promise<{ relationships: { address: string; tags: string[] }[] }>;
  /** Followers whom the user follows. */
  mutuals(params?: Page): Promise<{ mutuals: Follower[] }>;
  /** Accounts that the user follows and that follow the leader, by default the user. */
  commonFollowers(params?: { leader?: User } & Limits): Promise<{
    results: { address: string; name: string; avatar: string; header: string; mutuals_rank: string }[];
    length: number;
  }>;
  /** What primary lists did to the user, newest first. A site without history has none: a 404. */
  notifications(params?: Operations): Promise<{ summary: OperationsSummary; notifications: Operation[] }>;
  /** The same as an Atom feed. */
  notificationsAtom(params?: Operations): Promise<string>;
  /** State of a follower's primary list towards the user. */
  followerState(follower: User): Promise<{ addressUser: string; addressFollower: string; state: State }>;
}

export interface ListMethods extends Both {
  account(): Promise<ListAccount>;
  records(params?: { includeTags?: boolean }): Promise<{ records: ListRecord[] }>;
  tags(): Promise<{ token_id: TokenID } & TagSummary>;
  taggedAs(): Promise<{ token_id: TokenID } & TagSummary>;
  /** State of a follower's primary list towards the list's account. */
  followerState(follower: User): Promise<{ token_id: TokenID; address: string; state: State }>;
  /** What the list did, newest first. A site without history has none: a 404. */
  activity(params?: Operations): Promise<{ summary: OperationsSummary; activity: Operation[] }>;
  /** States of the list towards 1 to 1,000 users, in their order. A null is nobody. */
  buttonStateBatch(users: readonly (User | null)[]): Promise<BatchState[]>;
}

/** Members of a leaderboard's rows: `rank`, `address` and the board's count. */
export type BoardRow = { rank: number; address: string } & Record<string, string | number>;

/**
 * The API of a site. Methods return the JSON of the endpoint of their name, and throw an
 * ApiError for any other status than 200. A site with api=spec has only leaderboard,
 * searchFollowing, and a list's records, details and badges; find and rows work there too.
 */
export interface Site {
  /** Answers any request as the server does. `path` begins with a slash and may have a query. */
  answer(method: string, path: string, body?: string | Uint8Array): Promise<Answer>;
  /** The same for a path below the base path, without a slash before it. */
  ask(method: string, endpoint: string, body?: string | Uint8Array): Promise<Answer>;
  user(user: User): UserMethods;
  list(tokenID: TokenID): ListMethods;
  /**
   * Which account a user is, and its primary list, "" for none; null for a name that nobody
   * has. An address may be one that the graph does not know. A site with api=spec does not
   * know the address of a name without a primary list: then it is "".
   */
  find(user: User): Promise<{ address: string; token: TokenID } | null>;
  exportState(tokenID: TokenID): Promise<{ following: Followed[] }>;
  leaderboard(
    board: 'followers' | 'following' | 'blocked' | 'blocks' | 'muted' | 'mutes' | 'mutuals',
    params?: { limit?: number },
  ): Promise<BoardRow[]>;
  ranked(
    params?: Limits & { sort?: 'mutuals' | 'followers' | 'following' | 'top8' | 'blocks' | 'blocked'; direction?: 'asc' | 'desc' },
  ): Promise<Board>;
  search(term: string, params?: Limits): Promise<Board>;
  leaderboardCount(): Promise<{ leaderboardCount: string }>;
  stats(): Promise<{ stats: { address_count: string; list_count: string; list_op_count: string; user_count: string } }>;
  discover(params?: Limits): Promise<{
    latestFollows: {
      address: string;
      name: string | null;
      avatar: string | null;
      header: string | null;
      followers: string;
      following: string;
    }[];
  }>;
  /**
   * The same site, read anew by requests that wait until it has a block of each of some chains: `'8453:123'`, several
   * with commas between them, or `{ 8453: 123 }`. After `wait` seconds (10, which is the most) the answer is made of
   * what there is: `seen` or the answer's `heads` tells. A site that is not live is read as it is. What it has read it
   * keeps as long as any site does, so ask for another one after the next block.
   */
  after(blocks: string | Heads, options?: { wait?: number }): Site;
  /** How new the last answer was, if the site is live: the blocks that it has, and the time of the newest one. */
  seen(): { heads: Heads; asOf: string } | null;
  /** The root, `_site`: configuration and counts of the site. */
  root(): Promise<{ format: number; as_of: string; config: Record<string, unknown>; counts: Record<string, number> } & Record<string, unknown>>;
}

/** Returns the API of the site at a URL: that of the folder or bucket that has `_site`. */
export declare function openSite(base: string | URL, options?: Options): Site;
