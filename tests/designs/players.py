"""Players and what is theirs: the partition key is a bare id, and each item says its type.

From the schema examples of AWS (aws-dynamodb-examples, gaming player profiles).
"""

from __future__ import annotations

from datetime import datetime

from keygraph import ID, JSON, Epoch, Graph, Many, One, Table, node, one, record


@node("{player_id}", "#METADATA#{player_id}", type="Metadata", gather=True)
class Player:
    player_id: ID
    nickname: str
    email: str
    player_level: str
    created_at: datetime
    friends: One[Friends] = one()
    items: Many[Item]
    equipment: Many[Equipment]
    tasks: Many[Task]
    activities: Many[Activity]


@record("{player}", "FRIENDS#{player.player_id}")
class Friends:
    player: Player
    friend_list: JSON


@node("{player}", "ITEMS#{item_id}")
class Item:
    player: Player
    item_id: ID
    item_name: str
    item_type: str
    item_count: str


@record("{player}", "EQUIPMENTS#{equipment_id}")
class Equipment:
    player: Player
    equipment_id: ID
    equipment_name: str


@record("{player}", "TASK#{task_id}")
class Task:
    player: Player
    task_id: ID
    task_name: str
    task_status: str
    task_reward: JSON


@record("{player}", "ACTIVITY#{activity_id}")
class Activity:
    player: Player
    activity_id: ID
    activity_name: str
    activity_start_time: datetime


graph = Graph(
    Table("game-player-profiles", partition_key="PK", sort_key="SK"),
    Player,
    Friends,
    Item,
    Equipment,
    Task,
    Activity,
    type_attribute="Type",
    attribute_case="pascal",
    formats={datetime: Epoch(text=True)},
)

ITEMS = """
{"PK": "player001", "SK": "#METADATA#player001", "Type": "Metadata", "CreatedAt": "1618500000", "Nickname": "John", "Email": "john@example.com", "PlayerLevel": "10"}
{"PK": "player001", "SK": "FRIENDS#player001", "Type": "Friends", "FriendList": [{"FriendId": "player002", "FriendName": "Alice"}]}
{"PK": "player001", "SK": "ITEMS#001", "Type": "Item", "ItemName": "Health Potion", "ItemType": "Consumable", "ItemCount": "5"}
{"PK": "player001", "SK": "ITEMS#002", "Type": "Item", "ItemName": "Armor of the Knight", "ItemType": "Armor", "ItemCount": "1"}
{"PK": "player001", "SK": "EQUIPMENTS#001", "Type": "Equipment", "EquipmentName": "Sword of the Dragon"}
{"PK": "player001", "SK": "TASK#001", "Type": "Task", "TaskName": "Find the Lost Treasure", "TaskStatus": "InProgress", "TaskReward": {"Gold": 100}}
{"PK": "player001", "SK": "ACTIVITY#001", "Type": "Activity", "ActivityName": "Hunting Trip", "ActivityStartTime": "1647388800"}
"""

ASKED = """
getPlayerFriends
{ player(playerId: "player001") { friends { friendList } } }
{"player": {"friends": {"friendList": [{"FriendId": "player002", "FriendName": "Alice"}]}}}

getPlayerAllProfile
{ player(playerId: "player001") { nickname email playerLevel createdAt friends { friendList } items { totalCount } equipment { nodes { equipmentName } } tasks { nodes { taskName taskReward } } activities { nodes { activityName activityStartTime } } } }
{"player": {"nickname": "John", "email": "john@example.com", "playerLevel": "10", "createdAt": "2021-04-15T15:20:00Z", "friends": {"friendList": [{"FriendId": "player002", "FriendName": "Alice"}]}, "items": {"totalCount": 2}, "equipment": {"nodes": [{"equipmentName": "Sword of the Dragon"}]}, "tasks": {"nodes": [{"taskName": "Find the Lost Treasure", "taskReward": {"Gold": 100}}]}, "activities": {"nodes": [{"activityName": "Hunting Trip", "activityStartTime": "2022-03-16T00:00:00Z"}]}}}

getPlayerAllItems
{ player(playerId: "player001") { items { nodes { itemId itemName itemCount } } } }
{"player": {"items": {"nodes": [{"itemId": "001", "itemName": "Health Potion", "itemCount": "5"}, {"itemId": "002", "itemName": "Armor of the Knight", "itemCount": "1"}]}}}

getPlayerSpecificItem
{ item(playerId: "player001", itemId: "002") { itemName itemType player { nickname } } }
{"item": {"itemName": "Armor of the Knight", "itemType": "Armor", "player": {"nickname": "John"}}}

updateCharacterAttributes
mutation { updatePlayer(input: {playerId: "player001", playerLevel: "11"}) { player { nickname playerLevel } } }
{"updatePlayer": {"player": {"nickname": "John", "playerLevel": "11"}}}

updateItemCount
mutation { updateItem(input: {playerId: "player001", itemId: "001", itemCount: "4"}) { item { itemName itemCount } } }
{"updateItem": {"item": {"itemName": "Health Potion", "itemCount": "4"}}}
"""
