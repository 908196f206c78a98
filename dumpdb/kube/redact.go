package kube

import (
	"bytes"
	"encoding/base64"
	"encoding/json"

	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// redact hides the data of Secrets, including those inside a list. An object without Secrets is returned unchanged.
func redact(text []byte, env *dumpdb.KubeObject, digest func([]byte) string) ([]byte, error) {
	if !bytes.Contains(text, []byte("Secret")) && !bytes.Contains(text, []byte(`\u`)) {
		return text, nil // no kind in it is Secret, in any spelling
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, damaged(err)
	}
	if !(hider{digest}).secrets(v, env.Kind) {
		return text, nil
	}
	out, err := json.Marshal(v)
	if err != nil {
		return nil, damaged(err)
	}
	return out, nil
}

// hider hides the content of Secrets.
type hider struct{ digest func([]byte) string }

// secrets walks v, an object of the given kind, and reports whether it hid anything.
func (h hider) secrets(v any, kind string) (hid bool) {
	switch v := v.(type) {
	case map[string]any:
		if k, ok := v["kind"].(string); ok {
			kind = k
		}
		if kind == "Secret" {
			return h.secret(v)
		}
		for name, inner := range v {
			innerKind := ""
			if kind == "SecretList" && name == "items" {
				innerKind = "Secret"
			}
			hid = h.secrets(inner, innerKind) || hid
		}
	case []any:
		for _, inner := range v {
			hid = h.secrets(inner, kind) || hid
		}
	}
	return hid
}

// secret hides the content of a Secret. It hides the annotations too, since kubectl apply repeats the whole object in
// one.
func (h hider) secret(secret map[string]any) bool {
	secret["data"] = h.hidden(secret["data"], true)
	secret["stringData"] = h.hidden(secret["stringData"], false)
	for _, name := range []string{"data", "stringData"} {
		if secret[name] == nil {
			delete(secret, name)
		}
	}
	if meta, ok := secret["metadata"].(map[string]any); ok && meta["annotations"] != nil {
		meta["annotations"] = h.hidden(meta["annotations"], false)
	}
	return true
}

// hidden replaces every string in v by its length and digest. Encoded strings are base64 and measured decoded.
func (h hider) hidden(v any, encoded bool) any {
	switch v := v.(type) {
	case nil:
		return nil
	case map[string]any:
		for name, inner := range v {
			v[name] = h.hidden(inner, encoded)
		}
		return v
	case string:
		return h.text(v, encoded)
	}
	text, _ := json.Marshal(v) // what was decoded from JSON can be encoded again
	return h.text(string(text), false)
}

// text returns the replacement for a string.
func (h hider) text(s string, encoded bool) any {
	b := []byte(s)
	if encoded {
		if raw, err := base64.StdEncoding.DecodeString(s); err == nil {
			b = raw
		}
	}
	out := map[string]any{"len": len(b)}
	if h.digest != nil {
		out["digest"] = h.digest(b)
	}
	return out
}
