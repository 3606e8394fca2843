-- MySQL dump 10.13  Distrib 8.0.36, for Linux (x86_64)
--
-- Host: localhost    Database: handles
/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;
DROP TABLE IF EXISTS `nas`;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `nas` (
  `na` varchar(255) NOT NULL,
  PRIMARY KEY (`na`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
LOCK TABLES `nas` WRITE;
INSERT INTO `nas` VALUES ('0.NA/20.500.99999');
UNLOCK TABLES;
DROP TABLE IF EXISTS `handles`;
CREATE TABLE `handles` (
  `handle` varchar(255) NOT NULL,
  `idx` int NOT NULL,
  `type` blob,
  `data` blob,
  `ttl_type` smallint DEFAULT NULL,
  `ttl` int DEFAULT NULL,
  `timestamp` int DEFAULT NULL,
  `refs` blob,
  `admin_read` tinyint(1) DEFAULT NULL,
  `admin_write` tinyint(1) DEFAULT NULL,
  `pub_read` tinyint(1) DEFAULT NULL,
  `pub_write` tinyint(1) DEFAULT NULL,
  PRIMARY KEY (`handle`,`idx`),
  KEY `dataindex` (`data`(255))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
LOCK TABLES `handles` WRITE;
/*!40000 ALTER TABLE `handles` DISABLE KEYS */;
INSERT INTO `handles` VALUES ('20.500.99999/ABC-1',1,_binary 'URL',_binary 'https://example.org/1',0,86400,1700000000,NULL,1,1,1,0),('20.500.99999/ABC-1',2,_binary 'EMAIL',_binary 'a@example.org',0,86400,1700000000,_binary '7:20.500.99999/X\\tY%0025%00E9',1,1,1,0);
/*!40000 ALTER TABLE `handles` ENABLE KEYS */;
UNLOCK TABLES;
-- Dump completed
