package kube

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"

	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// digestLen is how many bytes of a sha256 stand for a hidden value.
const digestLen = 8

// redact hides the data of Secrets, also of those inside a list. An object that holds none is returned as it is.
func redact(text []byte, env *dumpdb.KubeObject) ([]byte, error) {
	if !bytes.Contains(text, []byte("Secret")) && !bytes.Contains(text, []byte(`\u`)) {
		return text, nil // no kind in it is one, in no spelling
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, damaged(err)
	}
	if !hideSecrets(v, env.Kind) {
		return text, nil
	}
	out, err := json.Marshal(v)
	if err != nil {
		return nil, damaged(err)
	}
	return out, nil
}

// hideSecrets walks v, an object of the given kind, and tells whether it hid anything.
func hideSecrets(v any, kind string) (hid bool) {
	switch v := v.(type) {
	case map[string]any:
		if k, ok := v["kind"].(string); ok {
			kind = k
		}
		if kind == "Secret" {
			return hideSecret(v)
		}
		for name, inner := range v {
			innerKind := ""
			if kind == "SecretList" && name == "items" {
				innerKind = "Secret"
			}
			hid = hideSecrets(inner, innerKind) || hid
		}
	case []any:
		for _, inner := range v {
			hid = hideSecrets(inner, kind) || hid
		}
	}
	return hid
}

// hideSecret hides what a Secret keeps. Its annotations go too: kubectl apply repeats the whole object in one.
func hideSecret(secret map[string]any) bool {
	secret["data"] = hidden(secret["data"], true)
	secret["stringData"] = hidden(secret["stringData"], false)
	for _, name := range []string{"data", "stringData"} {
		if secret[name] == nil {
			delete(secret, name)
		}
	}
	if meta, ok := secret["metadata"].(map[string]any); ok && meta["annotations"] != nil {
		meta["annotations"] = hidden(meta["annotations"], false)
	}
	return true
}

// hidden replaces every text in v by its length and digest; encoded texts are base64 and measured decoded.
func hidden(v any, encoded bool) any {
	switch v := v.(type) {
	case nil:
		return nil
	case map[string]any:
		for name, inner := range v {
			v[name] = hidden(inner, encoded)
		}
		return v
	case string:
		return digest(v, encoded)
	}
	text, _ := json.Marshal(v) // what was decoded from JSON encodes again
	return digest(string(text), false)
}

func digest(s string, encoded bool) any {
	b := []byte(s)
	if encoded {
		if raw, err := base64.StdEncoding.DecodeString(s); err == nil {
			b = raw
		}
	}
	sum := sha256.Sum256(b)
	return map[string]any{"len": len(b), "sha256": hex.EncodeToString(sum[:digestLen])}
}
