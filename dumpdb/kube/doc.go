// Package kube decodes the values that a Kubernetes apiserver stores in etcd into JSON and YAML.
//
// # Stored forms
//
// The apiserver writes a value in one of these forms (apimachinery pkg/runtime/serializer/protobuf, apiserver
// pkg/storage/value); dumpdb.ParseKube distinguishes them:
//
//	"k8s\x00" runtime.Unknown   built-in kinds, by default since Kubernetes 1.6: field 1 TypeMeta (apiVersion, kind),
//	                            field 2 the object as the protobuf of k8s.io/api
//	{ JSON }                    custom resources, CustomResourceDefinition and APIService always, everything when the
//	                            apiserver runs with --storage-media-type=application/json
//	"k8s:enc:PROVIDER:VERSION:NAME:" ciphertext
//	                            kinds that an EncryptionConfiguration names; only the provider and its key are known
//
// Protobuf needs the types: k8s.io/client-go/kubernetes/scheme registers every built-in group and version. For
// any other kind (of an aggregated apiserver, or newer than this library) only the envelope is decoded. Nothing is
// defaulted or converted: objects are shown as stored, in the version they were stored in.
//
// # Secrets
//
// The data of kind Secret is shown as length and digest unless Options.Secrets is set. So are its annotations, which
// may repeat the data.
//
// # Hostile values
//
// A value may be damaged or crafted. The decoders of k8s.io/api allocate a whole struct for an empty field of two
// bytes, so size and number of fields are bounded before they run, as is the depth of JSON.
package kube
