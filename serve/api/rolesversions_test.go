package api

// versionSamples has samples for the operations on old versions.
var versionSamples = map[string]sample{
	"disavowVersions":     {target: "/disavow/ark:12345/x1", body: `{"first":1,"reason":"Hijacked"}`},
	"compact":             {target: "/compact"},
	"getNamespaceHistory": {target: "/namespacehistory/ark:12345"},
}
