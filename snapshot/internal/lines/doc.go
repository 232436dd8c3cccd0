// Package lines reads compressed files of lines in blocks of whole lines.
package lines
