package site

// NormalizeName and Fold are for tests of all texts.
var (
	NormalizeName = normalizeName
	Fold          = fold
)
