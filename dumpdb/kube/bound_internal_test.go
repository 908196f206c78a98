package kube

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestCountFields counts what a decoder would read, of messages inside it too, and stops where it would.
func TestCountFields(t *testing.T) {
	eight, four := make([]byte, 8), make([]byte, 4)
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	one := []byte{0x08, 1}
	for name, c := range map[string]struct {
		b      []byte
		levels int
		want   int
	}{
		"nothing":              {nil, 9, 0},
		"varint":               {one, 9, 1},
		"two":                  {join(one, one), 9, 2},
		"no value":             {[]byte{0x08}, 9, 1},
		"half a tag":           {join(one, []byte{0xff}), 9, 1},
		"half a varint":        {join(one, []byte{0x08, 0xff}), 9, 2},
		"64 bits":              {join([]byte{0x09}, eight, one), 9, 2},
		"64 bits at the end":   {join([]byte{0x09}, eight), 9, 1},
		"64 bits cut":          {join([]byte{0x09}, eight[1:]), 9, 1},
		"32 bits":              {join([]byte{0x0d}, four, one), 9, 2},
		"32 bits cut":          {join([]byte{0x0d}, four[1:]), 9, 1},
		"message":              {join([]byte{0x0a, 4}, one, one, one), 9, 4},
		"message at the end":   {join([]byte{0x0a, 2}, one), 9, 2},
		"message cut":          {join([]byte{0x0a, 3}, one), 9, 1},
		"message without size": {[]byte{0x0a}, 9, 1},
		"empty message":        {join([]byte{0x0a, 0}, one), 9, 2},
		"message in a message": {join([]byte{0x0a, 4, 0x0a, 2}, one), 9, 3},
		"one level":            {join([]byte{0x0a, 4, 0x0a, 2}, one), 1, 2},
		"no level":             {join([]byte{0x0a, 4, 0x0a, 2}, one), 0, 1},
		"group":                {join([]byte{0x0b}, one, []byte{0x0c}, one), 9, 4},
		"no wire type":         {join(one, []byte{0x0e}, one), 9, 2},
		"up to the limit":      {bytes.Repeat(one, 10), 9, 10},
		"above the limit":      {bytes.Repeat(one, 12), 9, 11},
		"limit in a message":   {join([]byte{0x0a, 20}, bytes.Repeat(one, 10), bytes.Repeat(one, 9)), 9, 11},
	} {
		if got := countFields(c.b, 10, c.levels); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestBounds: each bound is the largest that is still decoded.
func TestBounds(t *testing.T) {
	field := []byte{0x08, 1}
	text := func(size int) []byte { // one field whose content is no message
		head := append([]byte{0x0a}, binary.AppendUvarint(nil, uint64(size-5))...)
		return append(head, bytes.Repeat([]byte{0x0e}, size-len(head))...)
	}
	arrays := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	quoted := func(n int) []byte { return []byte(`"` + strings.Repeat("a", n-2) + `"`) }
	for name, c := range map[string]struct {
		err  error
		fits bool
	}{
		"fields":            {bounded(bytes.Repeat(field, maxFields)), true},
		"a field more":      {bounded(bytes.Repeat(field, maxFields+1)), false},
		"size":              {bounded(text(maxSize)), true},
		"a byte more":       {bounded(text(maxSize + 1)), false},
		"depth":             {second(fromJSON(arrays(maxDepth))), true},
		"a level more":      {second(fromJSON(arrays(maxDepth + 1))), false},
		"size of JSON":      {second(fromJSON(quoted(maxSize))), true},
		"a byte more of it": {second(fromJSON(quoted(maxSize + 1))), false},
	} {
		if (c.err == nil) != c.fits || c.err != nil && !errors.Is(c.err, ErrTooLarge) {
			t.Errorf("%s: %v", name, c.err)
		}
	}
	if _, err := fromJSON([]byte("{")); !errors.Is(err, ErrDamaged) {
		t.Errorf("half a JSON text: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }

// TestDepth counts brackets outside of strings.
func TestDepth(t *testing.T) {
	for text, want := range map[string]int{"": 0, "1": 0, "{}": 1, "[]": 1, "[][]": 1, "[[]]": 2, `{"a":[{}]}`: 3,
		`"[["`: 0, `["[[", "]"]`: 1, `["\"[["]`: 1, `["\\",[]]`: 2, "[{}, [[]], {}]": 3} {
		if got := depth([]byte(text)); got != want {
			t.Errorf("%s: %d", text, got)
		}
	}
}

// TestSecretsOfAnyShape hides whatever is where a Secret has its content, and nothing else.
func TestSecretsOfAnyShape(t *testing.T) {
	digest := func(b []byte) string { return "d" + fmt.Sprint(len(b)) }
	for text, want := range map[string]string{
		`{"apiVersion":"v1","kind":"Secret","data":{"a":"aGk=","b":"no base64","c":null}}`: `{"apiVersion":"v1",` +
			`"data":{"a":{"digest":"d2","len":2},"b":{"digest":"d9","len":9},"c":null},"kind":"Secret"}`,
		`{"apiVersion":"v1","kind":"Secret","stringData":{"a":"aGk="}}`: `{"apiVersion":"v1","kind":"Secret",` +
			`"stringData":{"a":{"digest":"d4","len":4}}}`,
		`{"apiVersion":"v1","kind":"Secret","data":5,"stringData":["x"]}`: `{"apiVersion":"v1",` +
			`"data":{"digest":"d1","len":1},"kind":"Secret","stringData":{"digest":"d5","len":5}}`,
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"n","annotations":{"a":"x"}}}`: `{"apiVersion":"v1",` +
			`"kind":"Secret","metadata":{"annotations":{"a":{"digest":"d1","len":1}},"name":"n"}}`,
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"n"}}`: `{"apiVersion":"v1","kind":"Secret",` +
			`"metadata":{"name":"n"}}`,
		`{"apiVersion":"v1","kind":"SecretList","items":[{"data":{"a":"aGk="}}],"other":[{"data":{"a":"aGk="}}]}`: `{` +
			`"apiVersion":"v1","items":[{"data":{"a":{"digest":"d2","len":2}}}],"kind":"SecretList",` +
			`"other":[{"data":{"a":"aGk="}}]}`,
		`{"kind":"Pod","apiVersion":"v1","spec":{"of":"Secret","n":1.50}}`: `{"kind":"Pod","apiVersion":"v1",` +
			`"spec":{"of":"Secret","n":1.50}}`,
		`{"apiVersion":"v1","kind":"\u0053ecret","data":{"a":"aGk="}}`: `{"apiVersion":"v1",` +
			`"data":{"a":{"digest":"d2","len":2}},"kind":"Secret"}`,
		`{"apiVersion":"v1","kind":"ConfigMap", "data":{"a":"aGk="}}`: `{"apiVersion":"v1","kind":"ConfigMap",` +
			`"data":{"a":"aGk="}}`,
	} {
		obj, ok := Decode([]byte(text), Options{Digest: digest})
		if !ok || obj.Err != nil || string(obj.JSON) != want {
			t.Errorf("%s:\n%s, %v, want\n%s", text, obj.JSON, obj.Err, want)
		}
	}
	sealed, ok := Decode([]byte("k8s:enc:kms:v2:vault:\x00"), Options{})
	if text, err := sealed.YAML(); !ok || text != nil || !errors.Is(err, ErrEncrypted) {
		t.Errorf("%s, %v", text, err)
	}
}
