// Package kube decodes the values that a Kubernetes apiserver stores in etcd into JSON and YAML.
//
// # Stored forms
//
// The apiserver writes a value in one of these forms (apimachinery pkg/runtime/serializer/protobuf, apiserver
// pkg/storage/value); dumpdb.ParseKube tells them apart:
//
//	"k8s\x00" runtime.Unknown   built-in kinds, by default since Kubernetes 1.6: field 1 TypeMeta (apiVersion, kind),
//	                            field 2 the object as the protobuf of k8s.io/api
//	{ JSON }                    custom resources, CustomResourceDefinition and APIService always, everything when the
//	                            apiserver runs with --storage-media-type=application/json
//	"k8s:enc:PROVIDER:VERSION:NAME:" ciphertext
//	                            kinds that an EncryptionConfiguration names; only the provider and its key can be told
//
// Protobuf needs the types: k8s.io/client-go/kubernetes/scheme registers every built-in group and version. A kind that
// is not among them (an aggregated apiserver's own, or one newer than this library) keeps its envelope and is not
// decoded. Nothing is defaulted or converted: what is shown is what is stored, in the version it was stored in.
//
// # Secrets
//
// The data of kind Secret, and its annotations, which may repeat the data, are shown as length and digest unless asked
// for.
//
// # Hostile values
//
// A value may be damaged or built to hurt. The decoders of k8s.io/api allocate a whole struct for an empty field of two
// bytes, so size and number of fields are bounded before they run, as is the depth of JSON.
package kube
