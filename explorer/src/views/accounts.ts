// Accounts and lists: they load together, since most of them leads to more of them.

export { List } from './list';
export { Account } from './profile';
