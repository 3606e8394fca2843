package zonekey

import (
	"encoding/base64"
	"strings"
)

// TSIGSetting is how the configuration of a name server has a key.
type TSIGSetting struct {
	Server string // "BIND"
	Text   string // with the secret
}

// Settings returns how the configurations of secondaries have the key, which must have its secret.
func (k *TSIGKey) Settings() (list []TSIGSetting) {
	fill := strings.NewReplacer("{name}", k.Name, "{algorithm}", k.Algorithm, "{secret}", base64.StdEncoding.EncodeToString(k.Secret))
	for _, s := range []TSIGSetting{
		{"BIND", "key \"{name}\" {\n\talgorithm {algorithm};\n\tsecret \"{secret}\";\n};\n"},
		{"Knot", "key:\n  - id: {name}\n    algorithm: {algorithm}\n    secret: {secret}\n"},
		{"NSD", "key:\n  name: \"{name}\"\n  algorithm: {algorithm}\n  secret: \"{secret}\"\n"},
	} {
		list = append(list, TSIGSetting{s.Server, fill.Replace(s.Text)})
	}
	return list
}
