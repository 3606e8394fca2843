// Package bulk imports and exports many records.
//
// A [File] is opened and decompressed, a [Reader] cuts it into blocks of whole rows, a
// [Parser] reads what rows say (lines of JSON, or CSV in the encodings and with the headers
// of spreadsheets), and an [Importer] commits them in chunks to a [Destination], with a
// bookmark from which an interrupted import continues. [Rejects] is the file of rows that
// could not be imported. A [FileImport] has these for one file. Another reader than
// these two brings [Rows] of its own, as package foreign does. The API reads a request's
// body with the same Reader and Parser.
//
// [Export] writes records to an [Output], a file that appears when it is complete.
//
// Rows that are exported lose nothing when they are imported again.
package bulk
