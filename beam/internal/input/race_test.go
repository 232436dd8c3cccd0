//go:build race

package input_test

const raceDetector = true
