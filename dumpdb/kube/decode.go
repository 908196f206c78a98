package kube

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// Reasons why an object with a known envelope has no decoded form. Object.Err wraps them.
var (
	// ErrEncrypted means that an encryption provider wrote the value.
	ErrEncrypted = errors.New("the value is encrypted")
	// ErrUnknownKind means a protobuf object of a kind that k8s.io/client-go/kubernetes/scheme does not contain.
	ErrUnknownKind = errors.New("the kind is not built in")
	// ErrTooLarge means an object larger than any that an apiserver writes.
	ErrTooLarge = errors.New("the object is too large to decode safely")
	// ErrDamaged means that the bytes are not an object of their kind.
	ErrDamaged = errors.New("the object does not decode")
)

// Options select how a value is decoded.
type Options struct {
	// Secrets shows the data of kind Secret. Otherwise only its length is shown.
	Secrets bool
	// Digest, if set, adds a digest to each length, so that data can be compared. Use a keyed digest: a plain hash
	// reveals short values.
	Digest func(data []byte) string
}

// Object is a decoded value.
type Object struct {
	dumpdb.KubeObject
	// JSON is the object on one line; nil if Err is set.
	JSON []byte
	// Err wraps ErrEncrypted, ErrUnknownKind, ErrTooLarge or ErrDamaged. The envelope is valid even then.
	Err error
}

// Decode reads a value of bucket key; ok is false if the value is not a Kubernetes object. It does not keep value.
func Decode(value []byte, o Options) (obj Object, ok bool) {
	env, whole := dumpdb.ParseKube(value)
	if env.Encoding == "" {
		return obj, false
	}
	obj.KubeObject = env
	obj.Raw = nil
	if !whole {
		obj.Err = fmt.Errorf("%w: the envelope ends early or has no kind", ErrDamaged)
		return obj, true
	}
	obj.JSON, obj.Err = decode(&env, o)
	return obj, true
}

// YAML returns the object as YAML with sorted keys, as kubectl prints it; nil if it has no decoded form. Numbers that
// do not fit in 64 bits are rounded; JSON keeps them.
func (o *Object) YAML() (text []byte, err error) {
	if o.JSON == nil {
		return nil, o.Err
	}
	defer guard(&err)
	text, err = yaml.JSONToYAML(o.JSON)
	if err != nil {
		return nil, damaged(err)
	}
	return text, nil
}

func decode(env *dumpdb.KubeObject, o Options) (text []byte, err error) {
	defer guard(&err)
	switch env.Encoding {
	case "encrypted":
		return nil, fmt.Errorf("%w by %s", ErrEncrypted, providerOr(env.Provider))
	case "protobuf":
		text, err = fromProtobuf(env)
	default:
		text, err = fromJSON(env.Raw)
	}
	if err != nil || o.Secrets {
		return text, err
	}
	return redact(text, env, o.Digest)
}

func providerOr(p string) string {
	if p == "" {
		return "an unnamed provider"
	}
	return p
}

// guard turns a panic of an external decoder into an error: its input may be crafted to cause one.
func guard(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: the decoder failed: %v", ErrDamaged, p)
	}
}

func damaged(err error) error { return fmt.Errorf("%w: %w", ErrDamaged, err) }

// fromProtobuf decodes a built-in kind.
func fromProtobuf(env *dumpdb.KubeObject) ([]byte, error) {
	if err := bounded(env.Raw); err != nil {
		return nil, err
	}
	gv, err := schema.ParseGroupVersion(env.APIVersion)
	if err != nil {
		return nil, damaged(err)
	}
	gvk := gv.WithKind(env.Kind)
	typed, err := scheme.Scheme.New(gvk)
	if runtime.IsNotRegisteredError(err) {
		return nil, fmt.Errorf("%w: %s %s", ErrUnknownKind, env.APIVersion, env.Kind)
	}
	if err != nil {
		return nil, damaged(err)
	}
	msg, ok := typed.(interface{ Unmarshal([]byte) error })
	if !ok {
		return nil, fmt.Errorf("%w: %s %s has no protobuf form", ErrUnknownKind, env.APIVersion, env.Kind)
	}
	if err := msg.Unmarshal(env.Raw); err != nil {
		return nil, damaged(err)
	}
	typed.GetObjectKind().SetGroupVersionKind(gvk)
	text, err := json.Marshal(typed)
	if err != nil {
		return nil, damaged(err)
	}
	return text, nil
}

// fromJSON keeps order and numbers as stored; it removes only the space between tokens.
func fromJSON(raw []byte) ([]byte, error) {
	if len(raw) > maxSize {
		return nil, fmt.Errorf("%w: %s", ErrTooLarge, plural.Size(len(raw)))
	}
	if depth(raw) > maxDepth {
		return nil, fmt.Errorf("%w: nested more than %d deep", ErrTooLarge, maxDepth)
	}
	var out bytes.Buffer
	out.Grow(len(raw))
	if err := json.Compact(&out, raw); err != nil {
		return nil, damaged(err)
	}
	return out.Bytes(), nil
}
