// Check marks in names and tags. They look like a verification that nobody has made.

const tick = /[\u221a\u2611\u2705\u2713\u2714\u{10102}\u{1f5f8}\u{1f5f9}\u{1fbb1}]/u;

export const hasTick = (text: string): boolean => tick.test(text);
