// Package apijson has the JSON objects of the API as Go types: what package serve/api writes,
// client/remote reads, and the other way round. Records and namespaces are not here: package
// document reads and writes them, and an object that holds one keeps it in JSON, with the
// name of its schema in the tag schema. The tags doc, example, enum and the like are for the
// OpenAPI document. The names of the types are those of the schemas.
//
// It never judges what a request asks for, and knows neither a server nor a client.
package apijson

// Media types of requests and answers.
const (
	JSON        = "application/json"
	Lines       = "application/x-ndjson" // an object a line
	MergePatch  = "application/merge-patch+json"
	CSV         = "text/csv"
	Tar         = "application/x-tar"
	ProblemJSON = "application/problem+json"
)

// BundleState is the header with the text by which a client asks for the rest of a bundle.
const BundleState = "Stele-Bundle"
