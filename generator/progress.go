package generator

// Progress is told how far a run has come. Its methods are called from many goroutines.
type Progress interface {
	// Stage begins a part of the run. total is the sum of n over all calls of Add in this stage,
	// or 0 if it is not known.
	Stage(name string, total int64)
	// Add says that n more items are done.
	Add(n int64)
}

// noProgress is used for a nil Progress.
type noProgress struct{}

func (noProgress) Stage(string, int64) {}
func (noProgress) Add(int64)           {}
