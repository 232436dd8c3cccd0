// Package live is the command that follows the chains and answers from the newest graph.
package live
