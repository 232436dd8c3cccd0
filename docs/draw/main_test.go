package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"testing"
)

func TestPictureIsCurrent(t *testing.T) {
	got, err := os.ReadFile("../overview.svg")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, draw()) {
		t.Error("docs/overview.svg: got another picture than docs/draw draws: run `make docs`")
	}
	for d := xml.NewDecoder(bytes.NewReader(got)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("docs/overview.svg: %v", err)
		}
	}
}
