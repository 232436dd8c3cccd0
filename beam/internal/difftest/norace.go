//go:build !race

package difftest

const raceDetector = false
