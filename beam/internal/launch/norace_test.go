//go:build !race

package launch_test

const raceDetector = false
