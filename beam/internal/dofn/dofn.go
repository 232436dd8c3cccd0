// Package dofn registers DoFns, so that an element costs a call without reflection.
//
// Beam's package register does the same with generic code for each shape that the other methods of
// a DoFn could have. For five and more parameters, this takes the compiler minutes and gigabytes.
// Package dofn registers ProcessElement only: the other methods are called once per bundle, by
// reflection.
package dofn

import (
	"reflect"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/util/reflectx"
)

// register registers the type of a DoFn, and the call of its ProcessElement.
func register(doFn any, process func(doFn any) reflectx.Func) {
	t := reflect.TypeOf(doFn)
	beam.RegisterType(t)
	reflectx.RegisterStructWrapper(t.Elem(), func(doFn any) map[string]reflectx.Func {
		return map[string]reflectx.Func{"ProcessElement": process(doFn)}
	})
}

// A method is a ProcessElement of any shape. Types of each shape add the call.
type method struct{ fn any }

// Name returns the name of the method.
func (m *method) Name() string { return reflectx.FunctionName(m.fn) }

// Type returns the type of the method.
func (m *method) Type() reflect.Type { return reflect.TypeOf(m.fn) }

type has1x0[A any] interface{ ProcessElement(A) }

type call1x0[A any] struct {
	method
	process func(A)
}

func (c *call1x0[A]) Call(args []any) []any {
	c.process(args[0].(A))
	return nil
}

func (c *call1x0[A]) Call1x0(a0 any) { c.process(a0.(A)) }

// Register1x0 registers a DoFn whose ProcessElement has 1 parameter.
func Register1x0[A any](doFn has1x0[A]) {
	register(doFn, func(doFn any) reflectx.Func {
		process := doFn.(has1x0[A]).ProcessElement
		return &call1x0[A]{method{process}, process}
	})
}

type has2x0[A, B any] interface{ ProcessElement(A, B) }

type call2x0[A, B any] struct {
	method
	process func(A, B)
}

func (c *call2x0[A, B]) Call(args []any) []any {
	c.process(args[0].(A), args[1].(B))
	return nil
}

func (c *call2x0[A, B]) Call2x0(a0, a1 any) {
	c.process(a0.(A), a1.(B))
}

// Register2x0 registers a DoFn whose ProcessElement has 2 parameters.
func Register2x0[A, B any](doFn has2x0[A, B]) {
	register(doFn, func(doFn any) reflectx.Func {
		process := doFn.(has2x0[A, B]).ProcessElement
		return &call2x0[A, B]{method{process}, process}
	})
}

type has2x1[A, B any] interface{ ProcessElement(A, B) error }

type call2x1[A, B any] struct {
	method
	process func(A, B) error
}

func (c *call2x1[A, B]) Call(args []any) []any {
	return []any{c.process(args[0].(A), args[1].(B))}
}

func (c *call2x1[A, B]) Call2x1(a0, a1 any) any {
	return c.process(a0.(A), a1.(B))
}

// Register2x1 registers a DoFn whose ProcessElement has 2 parameters that returns an error.
func Register2x1[A, B any](doFn has2x1[A, B]) {
	register(doFn, func(doFn any) reflectx.Func {
		process := doFn.(has2x1[A, B]).ProcessElement
		return &call2x1[A, B]{method{process}, process}
	})
}

type has3x0[A, B, C any] interface{ ProcessElement(A, B, C) }

type call3x0[A, B, C any] struct {
	method
	process func(A, B, C)
}

func (c *call3x0[A, B, C]) Call(args []any) []any {
	c.process(args[0].(A), args[1].(B), args[2].(C))
	return nil
}

func (c *call3x0[A, B, C]) Call3x0(a0, a1, a2 any) {
	c.process(a0.(A), a1.(B), a2.(C))
}

// Register3x0 registers a DoFn whose ProcessElement has 3 parameters.
func Register3x0[A, B, C any](doFn has3x0[A, B, C]) {
	register(doFn, func(doFn any) reflectx.Func {
		process := doFn.(has3x0[A, B, C]).ProcessElement
		return &call3x0[A, B, C]{method{process}, process}
	})
}

type has3x1[A, B, C any] interface{ ProcessElement(A, B, C) error }

type call3x1[A, B, C any] struct {
	method
	process func(A, B, C) error
}

func (c *call3x1[A, B, C]) Call(args []any) []any {
	return []any{c.process(args[0].(A), args[1].(B), args[2].(C))}
}

func (c *call3x1[A, B, C]) Call3x1(a0, a1, a2 any) any {
	return c.process(a0.(A), a1.(B), a2.(C))
}

// Register3x1 registers a DoFn whose ProcessElement has 3 parameters that returns an error.
func Register3x1[A, B, C any](doFn has3x1[A, B, C]) {
	register(doFn, func(doFn any) reflectx.Func {
		process := doFn.(has3x1[A, B, C]).ProcessElement
		return &call3x1[A, B, C]{method{process}, process}
	})
}

type has4x0[A, B, C, D any] interface{ ProcessElement(A, B, C, D) }

type call4x0[A, B, C, D any] struct {
	method
	process func(A, B, C, D)
}

func (c *call4x0[A, B, C, D]) Call(args []any) []any {
	c.process(args[0].(A), args[1].(B), args[2].(C), args[3].(D))
	return nil
}

func (c *call4x0[A, B, C, D]) Call4x0(a0, a1, a2, a3 any) {
	c.process(a0.(A), a1.(B), a2.(C), a3.(D))
}

// Register4x0 registers a DoFn whose ProcessElement has 4 parameters.
func Register4x0[A, B, C, D any](doFn has4x0[A, B, C, D]) {
	register(doFn, func(doFn any) reflectx.Func {
		process := doFn.(has4x0[A, B, C, D]).ProcessElement
		return &call4x0[A, B, C, D]{method{process}, process}
	})
}

type has4x1[A, B, C, D any] interface{ ProcessElement(A, B, C, D) error }

type call4x1[A, B, C, D any] struct {
	method
	process func(A, B, C, D) error
}

func (c *call4x1[A, B, C, D]) Call(args []any) []any {
	return []any{c.process(args[0].(A), args[1].(B), args[2].(C), args[3].(D))}
}

func (c *call4x1[A, B, C, D]) Call4x1(a0, a1, a2, a3 any) any {
	return c.process(a0.(A), a1.(B), a2.(C), a3.(D))
}

// Register4x1 registers a DoFn whose ProcessElement has 4 parameters that returns an error.
func Register4x1[A, B, C, D any](doFn has4x1[A, B, C, D]) {
	register(doFn, func(doFn any) reflectx.Func {
		process := doFn.(has4x1[A, B, C, D]).ProcessElement
		return &call4x1[A, B, C, D]{method{process}, process}
	})
}

type has5x0[A, B, C, D, E any] interface{ ProcessElement(A, B, C, D, E) }

type call5x0[A, B, C, D, E any] struct {
	method
	process func(A, B, C, D, E)
}

func (c *call5x0[A, B, C, D, E]) Call(args []any) []any {
	c.process(args[0].(A), args[1].(B), args[2].(C), args[3].(D), args[4].(E))
	return nil
}

func (c *call5x0[A, B, C, D, E]) Call5x0(a0, a1, a2, a3, a4 any) {
	c.process(a0.(A), a1.(B), a2.(C), a3.(D), a4.(E))
}

// Register5x0 registers a DoFn whose ProcessElement has 5 parameters.
func Register5x0[A, B, C, D, E any](doFn has5x0[A, B, C, D, E]) {
	register(doFn, func(doFn any) reflectx.Func {
		process := doFn.(has5x0[A, B, C, D, E]).ProcessElement
		return &call5x0[A, B, C, D, E]{method{process}, process}
	})
}

type has5x1[A, B, C, D, E any] interface{ ProcessElement(A, B, C, D, E) error }

type call5x1[A, B, C, D, E any] struct {
	method
	process func(A, B, C, D, E) error
}

func (c *call5x1[A, B, C, D, E]) Call(args []any) []any {
	return []any{c.process(args[0].(A), args[1].(B), args[2].(C), args[3].(D), args[4].(E))}
}

func (c *call5x1[A, B, C, D, E]) Call5x1(a0, a1, a2, a3, a4 any) any {
	return c.process(a0.(A), a1.(B), a2.(C), a3.(D), a4.(E))
}

// Register5x1 registers a DoFn whose ProcessElement has 5 parameters that returns an error.
func Register5x1[A, B, C, D, E any](doFn has5x1[A, B, C, D, E]) {
	register(doFn, func(doFn any) reflectx.Func {
		process := doFn.(has5x1[A, B, C, D, E]).ProcessElement
		return &call5x1[A, B, C, D, E]{method{process}, process}
	})
}

type has6x1[A, B, C, D, E, F any] interface{ ProcessElement(A, B, C, D, E, F) error }

type call6x1[A, B, C, D, E, F any] struct {
	method
	process func(A, B, C, D, E, F) error
}

func (c *call6x1[A, B, C, D, E, F]) Call(args []any) []any {
	return []any{c.process(args[0].(A), args[1].(B), args[2].(C), args[3].(D), args[4].(E), args[5].(F))}
}

func (c *call6x1[A, B, C, D, E, F]) Call6x1(a0, a1, a2, a3, a4, a5 any) any {
	return c.process(a0.(A), a1.(B), a2.(C), a3.(D), a4.(E), a5.(F))
}

// Register6x1 registers a DoFn whose ProcessElement has 6 parameters that returns an error.
func Register6x1[A, B, C, D, E, F any](doFn has6x1[A, B, C, D, E, F]) {
	register(doFn, func(doFn any) reflectx.Func {
		process := doFn.(has6x1[A, B, C, D, E, F]).ProcessElement
		return &call6x1[A, B, C, D, E, F]{method{process}, process}
	})
}

type has7x1[A, B, C, D, E, F, G any] interface {
	ProcessElement(A, B, C, D, E, F, G) error
}

type call7x1[A, B, C, D, E, F, G any] struct {
	method
	process func(A, B, C, D, E, F, G) error
}

func (c *call7x1[A, B, C, D, E, F, G]) Call(args []any) []any {
	return []any{c.process(args[0].(A), args[1].(B), args[2].(C), args[3].(D), args[4].(E), args[5].(F), args[6].(G))}
}

func (c *call7x1[A, B, C, D, E, F, G]) Call7x1(a0, a1, a2, a3, a4, a5, a6 any) any {
	return c.process(a0.(A), a1.(B), a2.(C), a3.(D), a4.(E), a5.(F), a6.(G))
}

// Register7x1 registers a DoFn whose ProcessElement has 7 parameters that returns an error.
func Register7x1[A, B, C, D, E, F, G any](doFn has7x1[A, B, C, D, E, F, G]) {
	register(doFn, func(doFn any) reflectx.Func {
		process := doFn.(has7x1[A, B, C, D, E, F, G]).ProcessElement
		return &call7x1[A, B, C, D, E, F, G]{method{process}, process}
	})
}
