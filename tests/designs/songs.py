"""Songs by artist and title, without words in their keys. From the first steps in the developer guide of DynamoDB, table Music."""

from __future__ import annotations

from keygraph import ID, Graph, Index, Many, Table, node

by_genre = Index("GenreAlbumTitle", "Genre", "AlbumTitle")


@node("{artist}", item=False)
class Artist:
    artist: ID
    songs: Many[Song]


@node("{artist}", "{song_title}", by_genre(lists="songs_of_genre"))
class Song:
    artist: Artist
    song_title: ID
    album_title: str
    genre: str
    awards: int = 0


graph = Graph(
    Table("Music", partition_key="Artist", sort_key="SongTitle", indexes=[by_genre]),
    Artist,
    Song,
    attribute_case="pascal",
)

ITEMS = """
{"Artist": "Acme Band", "SongTitle": "Happy Day", "AlbumTitle": "Songs About Life", "Genre": "Rock", "Awards": 10}
{"Artist": "Acme Band", "SongTitle": "Look Out", "AlbumTitle": "The Buck Starts Here", "Genre": "Rock"}
{"Artist": "No One You Know", "SongTitle": "Call Me Today", "AlbumTitle": "Somewhat Famous", "Genre": "Country", "Awards": 1}
{"Artist": "No One You Know", "SongTitle": "My Dog Spot", "AlbumTitle": "Hey Now", "Genre": "Country", "Awards": 1}
"""

ASKED = """
The songs of an artist
{ artist(artist: "Acme Band") { songs { nodes { songTitle awards } } } }
{"artist": {"songs": {"nodes": [{"songTitle": "Happy Day", "awards": 10}, {"songTitle": "Look Out", "awards": 0}]}}}

The albums of a genre
{ songsOfGenre(genre: "Country") { nodes { albumTitle } } }
{"songsOfGenre": {"nodes": [{"albumTitle": "Hey Now"}, {"albumTitle": "Somewhat Famous"}]}}
"""
