// Package panics keeps panics of goroutines from ending the process.
package panics

import (
	"fmt"
	"runtime/debug"
)

// Catch turns a panic into an error with the stack. It must be deferred.
func Catch(err *error) {
	if fault := recover(); fault != nil {
		*err = fmt.Errorf("panic: %v\n%s", fault, debug.Stack())
	}
}
