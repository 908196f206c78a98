package redact

import (
	"reflect"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/dossier"
	"github.com/etcd-medic/etcd-medic/shell"
)

// visitor changes the content of a dossier.
type visitor struct {
	text    func(string) string
	bytes   func(check.Bytes) check.Bytes
	command func(shell.Command) shell.Command
	// nameless removes the names of Kubernetes objects, since they are parts of keys.
	nameless bool
}

var (
	bytesType   = reflect.TypeFor[check.Bytes]()
	commandType = reflect.TypeFor[shell.Command]()
	// columns are lists of keys and digests; they are redacted separately and not as text.
	columnFields = map[reflect.Type][]string{
		reflect.TypeFor[dossier.Difference](): {"Rest", "Objects"},
		reflect.TypeFor[dossier.Cells]():      {"SHA"},
	}
)

// eachText visits every text of a dossier except the columns.
func eachText(d *dossier.Dossier, f func(string) string) {
	each(reflect.ValueOf(d), visitor{text: f,
		bytes:   func(b check.Bytes) check.Bytes { f(string(b)); return b },
		command: func(c shell.Command) shell.Command { return c.Rewrite(f) }})
}

// each walks a value and changes the texts in it. Keys of maps are names of users, roles and buckets; they are kept.
func each(v reflect.Value, use visitor) {
	switch {
	case v.Type() == bytesType:
		if v.Len() > 0 {
			v.Set(reflect.ValueOf(use.bytes(v.Bytes())))
		}
		return
	case v.Type() == commandType:
		v.Set(reflect.ValueOf(use.command(v.Interface().(shell.Command))))
		return
	}
	switch v.Kind() {
	case reflect.String:
		if s := v.String(); s != "" {
			if now := use.text(s); now != s {
				v.SetString(now)
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			each(v.Elem(), use)
		}
	case reflect.Slice, reflect.Array:
		if !holdsText(v.Type().Elem()) {
			return
		}
		for i := range v.Len() {
			each(v.Index(i), use)
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			now := reflect.New(v.Type().Elem()).Elem()
			now.Set(v.MapIndex(k))
			each(now, use)
			v.SetMapIndex(k, now)
		}
	case reflect.Struct:
		eachField(v, use)
	}
}

// object reports whether a type names a Kubernetes object.
func object(t reflect.Type) bool {
	for _, name := range []string{"Kind", "Namespace", "Name"} {
		if f, ok := t.FieldByName(name); !ok || f.Type.Kind() != reflect.String {
			return false
		}
	}
	return true
}

func eachField(v reflect.Value, use visitor) {
	if use.nameless && object(v.Type()) {
		v.FieldByName("Namespace").SetString("")
		v.FieldByName("Name").SetString("")
	}
	skip := columnFields[v.Type()]
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() || len(skip) > 0 && (f.Name == skip[0] || f.Name == skip[len(skip)-1]) {
			continue
		}
		each(v.Field(i), use)
	}
}

// holdsText is false for elements that are plain numbers.
func holdsText(t reflect.Type) bool { return t.Kind() < reflect.Bool || t.Kind() > reflect.Complex128 }
